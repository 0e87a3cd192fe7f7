"""A server of fastmcp: `fastmcp_server.py stdio` or `fastmcp_server.py http PORT`."""

import sys

from fastmcp import Context, FastMCP
from offer import add_to

server = FastMCP("interop-fastmcp")
add_to(server, Context, {"output_schema": None})

if sys.argv[1] == "http":
    server.run("http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
else:
    server.run("stdio", show_banner=False)
