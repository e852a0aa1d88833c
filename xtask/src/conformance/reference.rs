//! The number of checks that the reference passes: the TypeScript SDK 2.4.0, one scenario at a time.
//!
//! In the scenarios of authorization, every MCP request with a valid token is a check. With a handshake,
//! the reference sends five of them after a login: `server/discover` (which fails), `initialize`,
//! `notifications/initialized`, `tools/list` and `tools/call`; without, three.

/// The version in the suite's listing for scenarios of extensions. They run without `--spec-version`;
/// the suite then speaks 2025-11-25.
pub(super) const EXTENSION: &str = "extension";

/// The last version in which the MCP server is its own authorization server.
const OLD: &str = "2025-03-26";
/// The last version with a handshake.
const HANDSHAKE: &str = "2025-11-25";
/// The first version without a handshake.
const MODERN: &str = "2026-07-28";

/// The versions under test, as the suite lists them.
pub(super) const VERSIONS: [&str; 4] = [OLD, HANDSHAKE, MODERN, EXTENSION];

/// A scenario with the number of checks that the reference passes, by version.
pub(super) type Scenario = (&'static str, &'static [(&'static str, usize)]);

/// All scenarios under test.
pub(super) const SCENARIOS: &[Scenario] = &[
    ("initialize", &[(HANDSHAKE, 1)]),
    ("tools_call", &[(HANDSHAKE, 2), (MODERN, 2)]),
    ("elicitation-sep1034-client-defaults", &[(HANDSHAKE, 5)]),
    ("sse-retry", &[(HANDSHAKE, 3)]),
    ("json-schema-2020-12-preservation", &[(HANDSHAKE, 9), (MODERN, 9)]),
    ("request-metadata", &[(MODERN, 8)]),
    ("sep-2322-client-request-state", &[(MODERN, 5)]),
    ("http-standard-headers", &[(MODERN, 9)]),
    ("http-custom-headers", &[(MODERN, 18)]),
    ("http-invalid-tool-headers", &[(MODERN, 12)]),
    ("json-schema-ref-no-deref", &[(MODERN, 1)]),
    ("auth/metadata-default", &[(HANDSHAKE, 19), (MODERN, 18)]),
    ("auth/metadata-var1", &[(HANDSHAKE, 19), (MODERN, 18)]),
    ("auth/metadata-var2", &[(HANDSHAKE, 19), (MODERN, 18)]),
    ("auth/metadata-var3", &[(HANDSHAKE, 19), (MODERN, 18)]),
    ("auth/basic-cimd", &[(HANDSHAKE, 14), (MODERN, 12)]),
    ("auth/scope-from-www-authenticate", &[(HANDSHAKE, 15), (MODERN, 14)]),
    ("auth/scope-from-scopes-supported", &[(HANDSHAKE, 15), (MODERN, 14)]),
    ("auth/scope-omitted-when-undefined", &[(HANDSHAKE, 15), (MODERN, 14)]),
    ("auth/scope-step-up", &[(HANDSHAKE, 21), (MODERN, 23)]),
    ("auth/scope-retry-limit", &[(HANDSHAKE, 10), (MODERN, 11)]),
    ("auth/token-endpoint-auth-basic", &[(HANDSHAKE, 20), (MODERN, 19)]),
    ("auth/token-endpoint-auth-post", &[(HANDSHAKE, 20), (MODERN, 19)]),
    ("auth/token-endpoint-auth-none", &[(HANDSHAKE, 20), (MODERN, 19)]),
    ("auth/pre-registration", &[(HANDSHAKE, 13), (MODERN, 10)]),
    ("auth/2025-03-26-oauth-metadata-backcompat", &[(OLD, 13)]),
    ("auth/2025-03-26-oauth-endpoint-fallback", &[(OLD, 8)]),
    // The reference passes 3: it also requests the metadata of the authorization server that is named by
    // a document about another resource, whose data must not be used (RFC 9728, section 3.3).
    ("auth/resource-mismatch", &[(MODERN, 2)]),
    ("auth/offline-access-scope", &[(MODERN, 11)]),
    ("auth/offline-access-not-supported", &[(MODERN, 14)]),
    ("auth/authorization-server-migration", &[(MODERN, 27)]),
    ("auth/iss-supported", &[(MODERN, 14)]),
    ("auth/iss-not-advertised", &[(MODERN, 14)]),
    ("auth/iss-supported-missing", &[(MODERN, 8)]),
    ("auth/iss-wrong-issuer", &[(MODERN, 8)]),
    ("auth/iss-unexpected", &[(MODERN, 8)]),
    ("auth/iss-normalized", &[(MODERN, 8)]),
    ("auth/metadata-issuer-mismatch", &[(MODERN, 3)]),
    ("auth/client-credentials-jwt", &[(EXTENSION, 7)]),
    ("auth/client-credentials-basic", &[(EXTENSION, 7)]),
    ("auth/enterprise-managed-authorization", &[(EXTENSION, 8)]),
    ("auth/dpop", &[(EXTENSION, 12)]),
    ("auth/dpop-nonce", &[(EXTENSION, 14)]),
    ("auth/wif-jwt-bearer", &[(EXTENSION, 7)]),
    ("sep-2640-client-no-prefetch", &[(EXTENSION, 1)]),
    ("sep-2640-client-verify-digest", &[(EXTENSION, 1)]),
    ("sep-2640-client-verify-size", &[(EXTENSION, 1)]),
    ("sep-2640-client-verify-frontmatter", &[(EXTENSION, 1)]),
];

/// Scenarios that the reference fails. Their numbers are those of a minimal correct client, which
/// authorizes once, initializes, and lists the tools, or loads one skill.
pub(super) const NO_REFERENCE: &[&str] = &[
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/wif-jwt-bearer",
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
];

/// Scenarios in which a correct client refuses to continue, so that its exit status is not checked
/// (`allowClientError` in the suite).
pub(super) const REFUSING: &[&str] = &[
    "auth/scope-retry-limit",
    "auth/resource-mismatch",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
];
