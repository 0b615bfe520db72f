"""The knowledge base for other agents, over the Model Context Protocol.

Tools: the three retrieval tools of the agent, `ask`, `list_documents`, and `add_document` where it
is allowed; documents and chunks are resources too. `server` makes the server, `stdio` and `http`
are its transports.
"""
