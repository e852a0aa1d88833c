//! The number of checks that the reference passes: the TypeScript SDK 2.4.0, one scenario at a time.

/// The protocol versions under test: the last with a handshake, the first without.
pub(super) const VERSIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Each scenario with the checks that the reference passes in each of [`VERSIONS`]; `None` where the
/// suite does not have it.
pub(super) const SCENARIOS: &[(&str, [Option<usize>; 2])] = &[
    ("initialize", [Some(1), None]),
    ("tools_call", [Some(2), Some(2)]),
    ("elicitation-sep1034-client-defaults", [Some(5), None]),
    ("sse-retry", [Some(3), None]),
    ("json-schema-2020-12-preservation", [Some(9), Some(9)]),
    ("request-metadata", [None, Some(8)]),
    ("sep-2322-client-request-state", [None, Some(5)]),
    ("http-standard-headers", [None, Some(9)]),
    ("http-custom-headers", [None, Some(18)]),
    ("http-invalid-tool-headers", [None, Some(12)]),
    ("json-schema-ref-no-deref", [None, Some(1)]),
];

/// Name prefixes of scenarios that are not run yet: authorization, and skills, which are an extension.
pub(super) const LEFT_OUT: &[&str] = &["auth/", "sep-2640-"];
