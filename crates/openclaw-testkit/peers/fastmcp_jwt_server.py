"""A FastMCP server that accepts the JWTs of the authorization server in the environment variable ISSUER.

FastMCP's own `JWTVerifier` checks them, which takes bearer tokens only. It listens on 127.0.0.1, on the
port in PORT or on a free one, prints its address as the first line, and exits when its stdin is closed. All
requests need the scope `mcp:read`. OPTIONS is JSON: `dpop_required` lets the metadata require bound tokens.

Controls for tests, all without a body:
  GET  /_test/seen       the scheme of every Authorization header so far
  POST /_test/expire     all tokens issued until now are invalid from now on
"""

import json
import os
import socket
import threading
import time

from fastmcp import FastMCP
from fastmcp.server.auth import RemoteAuthProvider
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.server.dependencies import get_access_token
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

ISSUER = os.environ["ISSUER"]
OPTIONS = {"dpop_required": False, **json.loads(os.environ.get("OPTIONS", "{}"))}

seen: list[dict] = []
expired = 0


class Verifier(JWTVerifier):
    """Also rejects the tokens that the test lets expire."""

    async def verify_token(self, token: str):
        access = await super().verify_token(token)
        return access if access and access.claims["issued_ms"] > expired else None


class Outermost:
    """Records how tokens are presented, and lets the metadata require bound ones."""

    def __init__(self, app) -> None:
        self.app = app

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        if scope["path"] == "/mcp":
            header = dict(scope["headers"]).get(b"authorization", b"").decode()
            seen.append({"scheme": header.split(" ")[0] or None})
        if OPTIONS["dpop_required"] and "oauth-protected-resource" in scope["path"]:
            document = {
                "resource": f"{ADDRESS}/mcp",
                "authorization_servers": [ISSUER],
                "scopes_supported": ["mcp:read"],
                "dpop_bound_access_tokens_required": True,
            }
            return await JSONResponse(document)(scope, receive, send)
        await self.app(scope, receive, send)


def build() -> FastMCP:
    verifier = Verifier(
        jwks_uri=f"{ISSUER}/jwks",
        issuer=ISSUER,
        audience=f"{ADDRESS}/mcp",
        required_scopes=["mcp:read"],
    )
    auth = RemoteAuthProvider(verifier, [ISSUER], ADDRESS)
    server = FastMCP("openclaw-fastmcp-jwt", auth=auth)

    @server.tool
    def whoami() -> str:
        """Returns the subject, the client and the scopes of the access token."""
        token = get_access_token()
        subject = token.claims["sub"]
        return json.dumps({"subject": subject, "client": token.client_id, "scopes": token.scopes})

    @server.custom_route("/_test/{name}", methods=["GET", "POST"])
    async def control(request: Request) -> Response:
        global expired
        match request.path_params["name"]:
            case "seen":
                return JSONResponse(seen)
            case "expire":
                expired = int(time.time() * 1000)
            case _:
                return JSONResponse({"error": "unknown control"}, 404)
        return JSONResponse({})

    return server


def end_with_stdin() -> None:
    """Exits when the parent process, which holds the other end of stdin, is gone."""
    while os.read(0, 4096):
        pass
    os._exit(0)


threading.Thread(target=end_with_stdin, daemon=True).start()
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(os.environ.get("PORT", "0"))))
# From here on clients can connect; they wait until the server is ready.
listener.listen()
host, port = listener.getsockname()
ADDRESS = f"http://{host}:{port}"
print(f"{ADDRESS}/mcp", flush=True)
build().run(
    transport="http",
    show_banner=False,
    path="/mcp",
    host=host,
    port=port,
    sockets=[listener],
    middleware=[Middleware(Outermost)],
)
