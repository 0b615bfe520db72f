"""Arguments of the MCP server's own tools, as models write them."""

import pytest

from agentic_rag.mcp_server.arguments import Unusable, given


@pytest.mark.parametrize("sent", [{"offset": 50}, {"page": "2"}, {"cursor": "zzz"}])
def test_where_no_lone_value_counts_another_name_is_refused_with_those_there_are(
    sent: dict[str, object],
) -> None:
    with pytest.raises(Unusable, match=r"There is no argument `.*`; there are containing, after"):
        given(sent, ("containing", "after"), lone=False)
    assert given({"input": {"after": 5}}, ("containing", "after"), lone=False) == {"after": 5}
