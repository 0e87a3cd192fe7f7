"""What the servers of both Python SDKs offer. They differ in where things are imported from."""

import asyncio

from mcp.types import (
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from pydantic import BaseModel


class Name(BaseModel):
    name: str = "nobody"


def add_to(server, context, without_schema):
    """`context` is the class of the SDK's context, `without_schema` its word for a tool without an output schema."""

    @server.tool()
    def echo(message: str) -> str:
        return f"echo: {message}"

    @server.tool(**without_schema)
    def kinds() -> list:
        blob = BlobResourceContents(uri="data://b", blob="AAE=", mime_type="application/octet-stream")
        return [
            TextContent(type="text", text="t"),
            ImageContent(type="image", data="AAE=", mime_type="image/png"),
            AudioContent(type="audio", data="AAE=", mime_type="audio/wav"),
            ResourceLink(type="resource_link", uri="data://l", name="l"),
            EmbeddedResource(type="resource", resource=blob),
        ]

    @server.tool()
    async def steps(count: int, ctx: context) -> str:
        for step in range(1, count + 1):
            await ctx.report_progress(step, count, f"step {step}")
        return "stepped"

    @server.tool()
    async def wait(ctx: context) -> str:
        await ctx.report_progress(1, 2, "waiting")
        await asyncio.sleep(60)
        return "waited"

    @server.tool()
    async def ask(ctx: context) -> str:
        answer = await ctx.elicit("Who?", Name)
        return f"{answer.action}: {answer.data.name if answer.action == 'accept' else ''}"

    @server.resource("data://notes", mime_type="text/plain")
    def notes() -> str:
        return "notes"

    @server.resource("data://item/{number}")
    def item(number: str) -> str:
        return f"item {number}"

    @server.prompt()
    def greet(name: str) -> str:
        return f"Greet {name}."
