"""A server of fastmcp: `python3 fastmcp_server.py [--allow-unsandboxed]`, over stdio."""

import sys

from commands import Commands, operator_of
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError

from plenipo_authority import CAPABILITY, AuthorityError, kill_on_exit, meta_of

server = FastMCP("plenipo-kit-fastmcp", experimental_capabilities=CAPABILITY)
commands = Commands(operator_of(sys.argv[1:]))


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


kill_on_exit()
server.run("stdio", show_banner=False)
