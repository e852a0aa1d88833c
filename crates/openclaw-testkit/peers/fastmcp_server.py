"""A server made with FastMCP: fastmcp_server.py stdio | http | stateless | sse

Over HTTP it listens on 127.0.0.1, on the port in the environment variable PORT or on a free one, prints
its address as the first line, and exits when its stdin is closed.
"""

import asyncio
import os
import socket
import sys
import threading
from dataclasses import dataclass

import mcp_types
from fastmcp import Context, FastMCP

server = FastMCP("openclaw-fastmcp", instructions="A server for tests.")


@dataclass
class Answer:
    """The form of an elicitation."""

    name: str
    age: int = 30


@server.tool
def echo(text: str) -> str:
    """Returns the text."""
    return text


@server.tool
async def slow(context: Context, steps: int = 3, milliseconds: int = 20) -> str:
    """Takes time, and reports progress."""
    for step in range(steps):
        await context.report_progress(step, steps, f"step {step + 1} of {steps}")
        await asyncio.sleep(milliseconds / 1000)
    await context.report_progress(steps, steps)
    return f"done after {steps} steps"


@server.tool
async def ask(context: Context) -> str:
    """Requests a name and an age from the user, by an elicitation request (up to 2025-11-25)."""
    answer = await context.elicit("Who are you?", Answer)
    if answer.action != "accept":
        return answer.action
    return f"{answer.data.name} is {answer.data.age}"


@server.tool
def ask_by_result(context: Context) -> str | mcp_types.InputRequiredResult:
    """Requests a colour from the user, by an `input_required` result (from 2026-07-28 on)."""
    if context.input_responses is None:
        schema = {"type": "object", "properties": {"colour": {"type": "string"}}}
        params = mcp_types.ElicitRequestFormParams(message="Which colour?", requested_schema=schema)
        question = mcp_types.ElicitRequest(method="elicitation/create", params=params)
        return mcp_types.InputRequiredResult(
            input_requests={"colour": question}, request_state="first round"
        )
    answer = context.input_responses["colour"]
    if answer.action != "accept":
        return answer.action
    return f"{answer.content['colour']} after the {context.request_state}"


@server.tool
def fail() -> str:
    """Always fails."""
    raise ValueError("failed on purpose")


@server.resource("test://greeting")
def greeting() -> str:
    """A text."""
    return "Hello from FastMCP"


@server.resource("test://square/{number}")
def square(number: int) -> str:
    """The square of a number."""
    return str(number * number)


@server.prompt
def review(code: str) -> str:
    """Asks for a review."""
    return f"Please review:\n{code}"


def end_with_stdin() -> None:
    """Exits when the parent process, which holds the other end of stdin, is gone."""
    while os.read(0, 4096):
        pass
    os._exit(0)


def serve_http(mode: str, port: int) -> None:
    threading.Thread(target=end_with_stdin, daemon=True).start()
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    # From here on clients can connect; they wait until the server is ready.
    listener.listen()
    path = "/sse" if mode == "sse" else "/mcp"
    host, port = listener.getsockname()
    print(f"http://{host}:{port}{path}", flush=True)
    options = {} if mode == "sse" else {"stateless_http": mode == "stateless"}
    server.run(
        transport="sse" if mode == "sse" else "http",
        show_banner=False,
        path=path,
        host=host,
        port=port,
        sockets=[listener],
        **options,
    )


def main() -> None:
    mode = sys.argv[1] if len(sys.argv) > 1 else "stdio"
    if mode == "stdio":
        server.run(transport="stdio", show_banner=False)
    elif mode in ("http", "stateless", "sse"):
        serve_http(mode, int(os.environ.get("PORT", "0")))
    else:
        sys.exit(__doc__)


main()
