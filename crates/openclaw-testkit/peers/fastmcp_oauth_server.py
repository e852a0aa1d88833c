"""A FastMCP server with its own authorization server, that of the Python SDK, in the same process.

It listens on 127.0.0.1, on the port in the environment variable PORT or on a free one, prints its address
as the first line, and exits when its stdin is closed. A page asks for the consent, without a login. All
requests need the scope `read`, the tool `admin_task` needs `admin`, too.

Controls for tests, all without a body:
  GET  /_test/requests                         every request so far: method, path, query, form, status
  POST /_test/expire                           all access tokens become invalid
  POST /_test/revoke_refresh_tokens            all refresh tokens become invalid
"""

import html
import json
import os
import secrets
import socket
import threading
import time
from urllib.parse import parse_qsl

from fastmcp import FastMCP
from fastmcp.server.auth import require_scopes
from fastmcp.server.auth.providers import in_memory
from fastmcp.server.dependencies import get_access_token
from mcp.server.auth.provider import construct_redirect_uri
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

SCOPES = ["read", "admin"]

requests: list[dict] = []


class Provider(in_memory.InMemoryOAuthProvider):
    """Asks for the consent before it issues a code."""

    def __init__(self, address: str) -> None:
        super().__init__(
            base_url=address,
            client_registration_options=ClientRegistrationOptions(
                enabled=True, valid_scopes=SCOPES, default_scopes=SCOPES
            ),
            revocation_options=RevocationOptions(enabled=True),
            required_scopes=["read"],
        )
        self.address = address
        self.pending: dict[str, tuple] = {}

    async def authorize(self, client, params) -> str:
        ticket = secrets.token_hex(8)
        self.pending[ticket] = (client, params)
        return f"{self.address}/consent?ticket={ticket}"

    async def decide(self, ticket: str, approved: bool) -> str | None:
        """Returns where the user is sent."""
        client, params = self.pending.pop(ticket, (None, None))
        if client is None:
            return None
        if approved:
            return await super().authorize(client, params)
        uri = str(params.redirect_uri)
        return construct_redirect_uri(uri, error="access_denied", state=params.state)


class Recorder:
    """Records every request, except for those to the controls."""

    def __init__(self, app) -> None:
        self.app = app

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/_test/"):
            return await self.app(scope, receive, send)
        entry = {
            "method": scope["method"],
            "path": scope["path"],
            "query": dict(parse_qsl(scope["query_string"].decode())),
            "form": {},
        }
        requests.append(entry)
        is_form = any(
            name == b"content-type" and value.startswith(b"application/x-www-form-urlencoded")
            for name, value in scope["headers"]
        )
        body = b""

        async def reading():
            nonlocal body
            message = await receive()
            if is_form and message["type"] == "http.request":
                body += message.get("body", b"")
                entry["form"] = dict(parse_qsl(body.decode()))
            return message

        async def sending(message):
            if message["type"] == "http.response.start":
                entry["status"] = message["status"]
            await send(message)

        await self.app(scope, reading, sending)


def build(address: str) -> FastMCP:
    provider = Provider(address)
    server = FastMCP("openclaw-fastmcp-oauth", auth=provider)

    @server.tool
    def whoami() -> str:
        """Returns the client and the scopes of the access token."""
        token = get_access_token()
        return json.dumps({"client": token.client_id, "scopes": token.scopes})

    @server.tool(auth=require_scopes("admin"))
    def admin_task() -> str:
        """Needs the scope `admin`."""
        return "done"

    @server.custom_route("/consent", methods=["GET", "POST"])
    async def consent(request: Request) -> Response:
        ticket = request.query_params.get("ticket", "")
        if request.method == "POST":
            decision = (await request.form()).get("decision")
            target = await provider.decide(ticket, decision == "approve")
            if target is None:
                return HTMLResponse("unknown ticket", 400)
            return RedirectResponse(target, 302)
        return HTMLResponse(
            "<!doctype html><title>Consent</title>"
            f'<form method="post" action="/consent?ticket={html.escape(ticket)}">'
            '<button name="decision" value="approve">Approve</button>'
            '<button name="decision" value="deny">Deny</button></form>'
        )

    @server.custom_route("/_test/{name}", methods=["GET", "POST"])
    async def control(request: Request) -> Response:
        match request.path_params["name"]:
            case "requests":
                return JSONResponse(requests)
            case "expire":
                for token in provider.access_tokens.values():
                    token.expires_at = int(time.time()) - 1
                # Otherwise the refresh token is removed with its expired access token.
                provider._access_to_refresh_map.clear()
            case "revoke_refresh_tokens":
                provider.refresh_tokens.clear()
            case _:
                return JSONResponse({"error": "unknown control"}, 404)
        return JSONResponse({})

    return server


def end_with_stdin() -> None:
    """Exits when the parent process, which holds the other end of stdin, is gone."""
    while os.read(0, 4096):
        pass
    os._exit(0)


def main() -> None:
    threading.Thread(target=end_with_stdin, daemon=True).start()
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(os.environ.get("PORT", "0"))))
    # From here on clients can connect; they wait until the server is ready.
    listener.listen()
    host, port = listener.getsockname()
    address = f"http://{host}:{port}"
    print(f"{address}/mcp", flush=True)
    build(address).run(
        transport="http",
        show_banner=False,
        path="/mcp",
        host=host,
        port=port,
        sockets=[listener],
        middleware=[Middleware(Recorder)],
    )


main()
