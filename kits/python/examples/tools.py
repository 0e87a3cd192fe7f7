"""The tools of the example servers. The SDKs differ in where things are imported from."""

from commands import Commands

from plenipo_authority import AuthorityError, meta_of


def add_to(server, context, tool_error, commands: Commands) -> None:
    """`context` and `tool_error` are the classes of the SDK."""

    @server.tool()
    async def run(command: str, ctx: context) -> dict:
        """Run a shell command under the sandbox policy of this call."""
        try:
            return await commands.run(meta_of(ctx), command)
        except AuthorityError as error:
            raise tool_error(f"refused: {error}") from None

    @server.tool()
    async def repl(line: str, ctx: context) -> dict:
        """Run a line in a shell that stays."""
        try:
            return await commands.repl(meta_of(ctx), line)
        except AuthorityError as error:
            raise tool_error(f"refused: {error}") from None
