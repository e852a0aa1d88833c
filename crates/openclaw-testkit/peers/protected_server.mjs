// An MCP server that needs an access token of the authorization server in the environment variable ISSUER:
// node protected_server.mjs FOLDER_WITH_NODE_MODULES
//
// It is made with the TypeScript SDK 2, and serves all versions at /mcp. It listens on 127.0.0.1, on the
// port in PORT or on a free one (0), prints its address as the first line, and exits when its stdin is
// closed. Tools: `whoami` returns the subject and the scopes of the token; `admin_task` needs another scope.
// OPTIONS is JSON, see `defaults`.
//
// Controls for tests, all without a body:
//   GET  /_test/seen              the SHA-256 of every Authorization header, with the scheme and the status
//   POST /_test/expire            all tokens issued until now are invalid from now on
//   POST /_test/dpop_nonce?required=true   requests with DPoP need a nonce
import { createHash, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const packages = createRequire(path.resolve(process.argv[2], "package.json"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const sdk = await load("@modelcontextprotocol/server");
const { toNodeHandler } = await load("@modelcontextprotocol/node");
const jose = await load("jose");

const defaults = {
  // The scope that every request needs, and the one that `admin_task` needs.
  scope: "mcp:read",
  admin_scope: "mcp:admin",
  // Whether only tokens bound to a DPoP key are accepted, and only with a nonce.
  dpop: false,
  dpop_nonce: false,
  // Whether the check of the SDK is all that there is: bearer tokens only.
  bearer_only: false,
  // Whether the metadata requires bound tokens, whatever is accepted.
  dpop_required: false,
};
const options = { ...defaults, ...JSON.parse(process.env.OPTIONS ?? "{}") };
const issuer = process.env.ISSUER;

const seen = [];
let expired = 0;
let nonce = randomUUID();

const invalid = (message) => new sdk.OAuthError(sdk.OAuthErrorCode.InvalidToken, message);

/** Verifies the signature of a JWT, or asks the authorization server about an opaque token. */
function verifier(resource) {
  const keys = jose.createRemoteJWKSet(new URL(`${issuer}/jwks`));
  const introspect = async (token) => {
    const credentials = Buffer.from("protected-server:protected-server-secret");
    const response = await fetch(`${issuer}/token/introspection`, {
      method: "POST",
      headers: { authorization: `Basic ${credentials.toString("base64")}` },
      body: new URLSearchParams({ token }),
    });
    const claims = await response.json();
    if (!claims.active) throw invalid("inactive token");
    return claims;
  };
  const verify = async (token) => {
    const { payload } = await jose.jwtVerify(token, keys, { issuer, audience: resource });
    return payload;
  };
  return {
    async verifyAccessToken(token) {
      const isJwt = token.split(".").length === 3;
      const claims = await (isJwt ? verify(token) : introspect(token)).catch((error) => {
        throw error instanceof sdk.OAuthError ? error : invalid(error.message);
      });
      if (claims.aud !== resource) throw invalid("token for another resource");
      if (claims.issued_ms <= expired) throw invalid("expired by the test");
      return {
        token,
        clientId: claims.client_id,
        scopes: (claims.scope ?? "").split(" "),
        expiresAt: claims.exp,
        resource: new URL(claims.aud),
        extra: { subject: claims.sub, jkt: claims.cnf?.jkt },
      };
    },
  };
}

/** Checks the DPoP proof of a request (RFC 9449, section 4.3); replay is not checked. */
async function checkProof(request, resource, token, jkt) {
  const proof = request.headers.get("dpop");
  if (!proof) throw invalid("DPoP proof missing");
  const verified = await jose
    .jwtVerify(proof, jose.EmbeddedJWK, { typ: "dpop+jwt", maxTokenAge: "5 minutes" })
    .catch((error) => {
      throw invalid(error.message);
    });
  const { payload, protectedHeader } = verified;
  const ath = createHash("sha256").update(token).digest("base64url");
  if (payload.htm !== request.method) throw invalid("htm does not match");
  if (payload.htu !== resource) throw invalid("htu does not match");
  if (payload.ath !== ath) throw invalid("ath does not match");
  if ((await jose.calculateJwkThumbprint(protectedHeader.jwk)) !== jkt) {
    throw invalid("the proof is by another key");
  }
  return payload.nonce;
}

function tools() {
  const server = new sdk.McpServer({ name: "openclaw-protected", version: "1.0.0" });
  const reply = (value) => ({ content: [{ type: "text", text: JSON.stringify(value) }] });
  server.registerTool(
    "whoami",
    { description: "Returns the subject, the client and the scopes of the access token." },
    ({ http }) => {
      const { extra, clientId, scopes } = http.authInfo;
      return reply({ subject: extra.subject, client: clientId, scopes });
    },
  );
  server.registerTool(
    "admin_task",
    {
      description: `Needs the scope ${options.admin_scope}.`,
      scopeChallenge: sdk.requireScopes(options.admin_scope),
    },
    () => reply("done"),
  );
  return server;
}

function handler(resource) {
  const metadataUrl = sdk.getOAuthProtectedResourceMetadataUrl(new URL(resource));
  const metadata = {
    resource,
    authorization_servers: [issuer],
    scopes_supported: [options.scope],
    bearer_methods_supported: ["header"],
    ...((options.dpop || options.dpop_required) && { dpop_bound_access_tokens_required: true }),
  };
  const bearer = {
    verifier: verifier(resource),
    expectedResource: new URL(resource),
    resourceMetadataUrl: metadataUrl,
    requiredScopes: [options.scope],
  };
  const mcp = sdk.createMcpHandler(tools);

  const authorize = async (request) => {
    const header = request.headers.get("authorization") ?? "";
    const [scheme, token] = header.split(" ");
    if (options.bearer_only) return await sdk.verifyBearerToken(header, bearer);
    const isDpop = scheme.toLowerCase() === "dpop";
    const auth = await sdk.verifyBearerToken(isDpop ? `Bearer ${token}` : header, bearer);
    if (isDpop !== Boolean(auth.extra.jkt) || (options.dpop && !isDpop)) {
      throw invalid("the scheme does not fit the token");
    }
    if (isDpop) {
      const used = await checkProof(request, resource, token, auth.extra.jkt);
      if (options.dpop_nonce && used !== nonce) throw "use_dpop_nonce";
    }
    return auth;
  };

  const refuse = (error) => {
    if (error === "use_dpop_nonce") {
      const challenge = `DPoP error="use_dpop_nonce", resource_metadata="${metadataUrl}"`;
      const headers = { "www-authenticate": challenge, "dpop-nonce": nonce };
      return new Response(null, { status: 401, headers });
    }
    const response = sdk.bearerAuthChallengeResponse(error, bearer);
    const challenge = response.headers.get("www-authenticate");
    if (options.dpop && challenge) {
      response.headers.set("www-authenticate", challenge.replace(/^Bearer/, "DPoP"));
    }
    return response;
  };

  return async (request) => {
    const { pathname, searchParams } = new URL(request.url);
    switch (pathname) {
      case new URL(metadataUrl).pathname:
        return Response.json(metadata);
      case "/_test/seen":
        return Response.json(seen);
      case "/_test/expire":
        expired = Date.now();
        // A token that is issued from now on must be later, even on a fast machine.
        await new Promise((resolve) => setTimeout(resolve, 5));
        return Response.json({});
      case "/_test/dpop_nonce":
        options.dpop_nonce = searchParams.get("required") === "true";
        nonce = randomUUID();
        return Response.json({});
      case "/mcp": {
        const header = request.headers.get("authorization");
        const sha256 = header && createHash("sha256").update(header).digest("hex");
        const entry = { method: request.method, scheme: header?.split(" ")[0] ?? null, sha256 };
        seen.push(entry);
        const response = await authorize(request).then(
          (authInfo) => mcp.fetch(request, { authInfo }),
          refuse,
        );
        entry.status = response.status;
        return response;
      }
      default:
        return new Response("not found", { status: 404 });
    }
  };
}

const server = createServer();
server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
  const resource = `http://127.0.0.1:${server.address().port}/mcp`;
  server.on("request", toNodeHandler({ fetch: handler(resource) }));
  process.stdout.write(`${resource}\n`);
});

process.stdin.on("end", () => process.exit()).resume();
