"""A server of fastmcp: `python3 fastmcp_server.py [--allow-unsandboxed]`, over stdio."""

import sys

from commands import Commands, operator_of
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from tools import add_to

from plenipo_authority import CAPABILITY, kill_on_exit

server = FastMCP("plenipo-kit-fastmcp", experimental_capabilities=CAPABILITY)
add_to(server, Context, ToolError, Commands(operator_of(sys.argv[1:])))
kill_on_exit()
server.run("stdio", show_banner=False)
