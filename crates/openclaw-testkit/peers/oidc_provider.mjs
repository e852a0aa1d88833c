// The authorization server `oidc-provider`: node oidc_provider.mjs FOLDER_WITH_NODE_MODULES
//
// It listens on 127.0.0.1, on the port in the environment variable PORT or on a free one (0), prints its
// issuer as the first line, and exits when its stdin is closed. Any user name and password are accepted;
// its own pages ask for them and for the consent. OPTIONS is JSON, see `defaults`.
//
// Controls for tests, all without a body:
//   GET  /_test/requests                            every request so far: method, path, query, form, status
//   POST /_test/revoke_refresh_tokens               all of them become invalid
import { createHash, generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const packages = createRequire(path.resolve(process.argv[2], "package.json"));
const { Provider } = await import(pathToFileURL(packages.resolve("oidc-provider")));

const defaults = {
  // Seconds.
  access_token_lifetime: 3600,
  // "jwt" or "opaque".
  access_token_format: "jwt",
  // Scopes of the protected server, and those of a request that names none.
  scopes: ["mcp:read", "mcp:admin"],
  default_scope: "mcp:read",
  // Whether tokens are issued only with a DPoP proof, and only with a nonce.
  dpop: false,
  dpop_nonce: false,
};
const options = { ...defaults, ...JSON.parse(process.env.OPTIONS ?? "{}") };

const requests = [];

/** Keeps everything in memory, by model, so that all tokens of a kind can be revoked. */
class Store {
  static models = new Map();

  constructor(model) {
    if (!Store.models.has(model)) Store.models.set(model, new Map());
    this.entries = Store.models.get(model);
  }

  async upsert(id, payload, lifetime) {
    const end = lifetime ? Date.now() + lifetime * 1000 : Infinity;
    this.entries.set(id, { payload, end });
  }

  async find(id) {
    const entry = this.entries.get(id);
    if (entry && entry.end > Date.now()) return entry.payload;
    this.entries.delete(id);
  }

  async findByUid(uid) {
    return [...this.entries.values()].find(({ payload }) => payload.uid === uid)?.payload;
  }

  async findByUserCode() {}

  async consume(id) {
    this.entries.get(id).payload.consumed = Math.floor(Date.now() / 1000);
  }

  async destroy(id) {
    this.entries.delete(id);
  }

  async revokeByGrantId(grantId) {
    for (const [id, { payload }] of this.entries) {
      if (payload.grantId === grantId) this.entries.delete(id);
    }
  }
}

function configuration() {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = { ...privateKey.export({ format: "jwk" }), kid: "test", alg: "RS256", use: "sig" };
  // The protected server checks opaque tokens with this client.
  const introspecting = {
    client_id: "protected-server",
    client_secret: "protected-server-secret",
    redirect_uris: [],
    response_types: [],
    grant_types: [],
  };
  return {
    adapter: Store,
    clients: [introspecting],
    clientDefaults: { dpop_bound_access_tokens: options.dpop },
    cookies: { keys: ["not a secret: this server is for tests"] },
    expiresWithSession: () => false,
    extraTokenClaims: () => ({ issued_ms: Date.now() }),
    features: {
      dPoP: {
        enabled: true,
        nonceSecret: createHash("sha256").update("test").digest(),
        requireNonce: () => options.dpop_nonce,
      },
      introspection: { enabled: true, allowedPolicy: () => true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ({
          scope: options.scopes.join(" "),
          audience: resource,
          accessTokenTTL: options.access_token_lifetime,
          accessTokenFormat: options.access_token_format,
        }),
      },
      revocation: { enabled: true },
    },
    issueRefreshToken: async (_, client) => client.grantTypeAllowed("refresh_token"),
    jwks: { keys: [key] },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    scopes: ["openid", "offline_access", ...options.scopes],
    ttl: { AccessToken: () => options.access_token_lifetime },
  };
}

/** Performs a control; returns the body of the response. */
function control(name) {
  switch (name) {
    case "requests":
      return requests;
    case "revoke_refresh_tokens":
      Store.models.get("RefreshToken")?.clear();
      return {};
  }
}

async function outermost(ctx, next) {
  const name = ctx.path.split("/_test/")[1];
  if (name) {
    const body = control(name);
    ctx.status = body ? 200 : 404;
    ctx.body = body ?? { error: "unknown control" };
    return;
  }
  const request = { method: ctx.method, path: ctx.path, query: { ...ctx.query } };
  requests.push(request);
  if (ctx.path === "/.well-known/oauth-authorization-server") {
    ctx.path = "/.well-known/openid-configuration";
  }
  if (ctx.path === "/auth" && !ctx.query.scope) {
    ctx.query = { ...ctx.query, scope: options.default_scope };
  }
  await next();
  request.status = ctx.status;
  request.form = { ...ctx.oidc?.body };
  if (ctx.body?.error) request.error = ctx.body.error;
}

const server = createServer();
server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, configuration());
  provider.use(outermost);
  provider.on("server_error", (_, error) => console.error(error));
  server.on("request", provider.callback());
  process.stdout.write(`${issuer}\n`);
});

process.stdin.on("end", () => process.exit()).resume();
