"""A server of the Python SDK: `python3 server.py [--allow-unsandboxed]`, over stdio."""

import sys

from commands import Commands, operator_of
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from plenipo_authority import CAPABILITY, AuthorityError, kill_on_exit, meta_of

server = MCPServer("plenipo-kit-python", log_level="ERROR")
commands = Commands(operator_of(sys.argv[1:]))


def opt_in(low_level) -> None:
    """Adds the capability; this SDK has an argument for it only in its low-level server."""
    capabilities = low_level.get_capabilities

    def with_policy(notification_options=None, experimental_capabilities=None, extensions=None, **rest):
        wanted = {**(experimental_capabilities or {}), **CAPABILITY}
        return capabilities(notification_options, wanted, extensions, **rest)

    low_level.get_capabilities = with_policy


@server.tool()
async def run(command: str, ctx: Context) -> dict:
    """Run a shell command under the sandbox policy of this call."""
    try:
        return await commands.run(meta_of(ctx), command)
    except AuthorityError as error:
        raise ToolError(f"refused: {error}") from None


@server.tool()
async def repl(line: str, ctx: Context) -> dict:
    """Run a line in a shell that stays."""
    try:
        return await commands.repl(meta_of(ctx), line)
    except AuthorityError as error:
        raise ToolError(f"refused: {error}") from None


opt_in(server._lowlevel_server)
kill_on_exit()
server.run("stdio")
