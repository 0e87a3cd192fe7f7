"""A server of the Python SDK: `python_sdk.py stdio` or `python_sdk.py http PORT`."""

import sys

from mcp.server.mcpserver import Context, MCPServer
from offer import add_to

server = MCPServer("interop-python", log_level="ERROR")
add_to(server, Context, {"structured_output": False})

if sys.argv[1] == "http":
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
else:
    server.run("stdio")
