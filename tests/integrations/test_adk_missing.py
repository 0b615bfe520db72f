"""Without google-adk, the agent says what to install."""

import subprocess
import sys


def test_without_the_extra_one_sentence_says_what_to_install() -> None:
    code = (
        "import sys\n"
        "sys.modules['google.adk'] = None\n"
        "try:\n    import agentic_rag.integrations.adk\n"
        "except ImportError as error:\n    print(type(error).__name__, error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.stdout.startswith("AdkMissing The ADK agent needs google-adk")
    assert ran.stdout.strip().endswith("run `pip install 'agentic-rag[adk]'`.")
    assert ran.stdout.count("\n") == 1
