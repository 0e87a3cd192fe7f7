"""A server of the Python SDK: `python3 server.py [--allow-unsandboxed]`, over stdio."""

import sys

from commands import Commands, operator_of
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from tools import add_to

from plenipo_authority import CAPABILITY, kill_on_exit

server = MCPServer("plenipo-kit-python", log_level="ERROR")


def opt_in(low_level) -> None:
    """Adds the capability; this SDK has an argument for it only in its low-level server."""
    capabilities = low_level.get_capabilities

    def with_policy(notification_options=None, experimental_capabilities=None, extensions=None, **rest):
        wanted = {**(experimental_capabilities or {}), **CAPABILITY}
        return capabilities(notification_options, wanted, extensions, **rest)

    low_level.get_capabilities = with_policy


add_to(server, Context, ToolError, Commands(operator_of(sys.argv[1:])))
opt_in(server._lowlevel_server)
kill_on_exit()
server.run("stdio")
