"""An assistant: the Python client, connected with a key. It checks what holds for every answer and every result."""

import contextlib
import json

import httpx2
from mcp import MCPError
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

MODERN = "2026-07-28"
NEWEST_LEGACY = "2025-11-25"
# The version that each mode of the client ends with.
MODES = {"auto": MODERN, "legacy": NEWEST_LEGACY, MODERN: MODERN}
TIMEOUT_S = 30
ANSWER_HEADERS = ("ratelimit", "ratelimit-policy", "x-request-id")
INVALID_PARAMS = -32602


class Assistant:
    """A connected client, the names of the tools that it called, and the HTTP exchanges."""

    def __init__(self, client, exchanges):
        self.client, self.exchanges, self.called = client, exchanges, set()

    async def tools(self):
        """The listed tools by name, in the order of the list."""
        listed = await self.client.list_tools(cache_mode="refresh")
        assert listed.next_cursor is None, listed.next_cursor
        return {tool.name: tool for tool in listed.tools}

    async def result(self, tool, **arguments):
        """Calls a tool that succeeds. The client has checked the result against the tool's output schema. `from_` is
        the argument `from`."""
        arguments = {name.rstrip("_"): value for name, value in arguments.items()}
        self.called.add(tool)
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, f"{tool} {arguments}: {result.content[0].text}"
        assert result.structured_content == json.loads(result.content[0].text), f"{tool}: text and structure differ"
        assert all(block.type == "text" for block in result.content), result.content
        assert result.meta["partner-api/request_id"], f"{tool}: {result.meta}"
        return result

    async def call(self, tool, **arguments):
        """Calls a tool that does something now, and returns its structured content."""
        result = await self.result(tool, **arguments)
        assert not is_replayed(result), f"{tool}: a stored answer"
        return result.structured_content

    async def replay(self, tool, **arguments):
        """Calls a tool again, and returns the structured content of the stored answer."""
        result = await self.result(tool, **arguments)
        assert is_replayed(result), f"{tool}: not marked as replayed: {result.meta}"
        assert len(result.content) >= 2 and result.content[1].text, f"{tool}: no text says that nothing was done"
        return result.structured_content

    async def fails(self, tool, code, **arguments):
        """Calls a tool that answers a tool error with this code, and returns its text."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error and result.structured_content is None, f"{tool} {arguments}: {result}"
        [block] = result.content
        assert f"[{code}]" in block.text, f"{tool} {arguments}: {block.text}, not [{code}]"
        return block.text

    async def is_unknown(self, tool):
        """Calls a tool that the key's scope does not have: a protocol error."""
        try:
            result = await self.client.call_tool(tool, {})
        except MCPError as error:
            assert error.code == INVALID_PARAMS, f"{tool}: {error.code} {error}"
        else:
            raise AssertionError(f"{tool} is known: {result}")


def is_replayed(result):
    return result.meta.get("partner-api/replayed") is True


def sender(key, exchanges):
    """An HTTP client that sends the key, and notes each answer."""

    async def note(response):
        exchanges.append(response)

    headers = {"authorization": f"Bearer {key}"} if key else {}
    # The stack speaks plain HTTP, so no certificates are loaded.
    return httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_S, verify=False, event_hooks={"response": [note]})


@contextlib.asynccontextmanager
async def assistant(url, key, mode="auto"):
    """Connects an assistant in a mode of the client. Checks the headers of its answers at the end."""
    exchanges = []
    async with sender(key, exchanges) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=TIMEOUT_S) as client:
            assert client.protocol_version == MODES[mode], f"mode {mode}: {client.protocol_version}"
            yield Assistant(client, exchanges)
    for response in exchanges:
        check_headers(response)
        assert str(response.url) == url and response.request.method == "POST", f"a request to {response.url}"


def check_headers(response):
    """Checks an authenticated answer: never cached, never a stream, and without a session."""
    headers, where = response.headers, f"{response.status_code}: {dict(response.headers)}"
    assert headers["cache-control"] == "no-store" and headers["x-content-type-options"] == "nosniff", where
    assert all(header in headers for header in ANSWER_HEADERS), where
    assert "mcp-session-id" not in headers, where
    if response.status_code != 202:
        assert headers["content-type"].startswith("application/json"), where


async def refusal(url, key, mode):
    """Connects with a key that is refused, in a mode of the client. Returns the first HTTP answer."""
    exchanges, is_accepted = [], False
    async with sender(key, exchanges) as http:
        try:
            async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
                await client.list_tools()
                is_accepted = True
        except* MCPError:
            pass
    assert not is_accepted, f"mode {mode}: the key is accepted"
    return exchanges[0]
