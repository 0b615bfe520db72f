"""`arag serve`: the HTTP API, the web page, MCP and OpenAI's protocol on one port."""
