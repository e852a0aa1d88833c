//! The cycles that are known. New ones are not added.

pub(super) const CYCLES: &[(&str, &[&str])] = &[(
    "openclaw-oauth",
    &[
        "authorize",
        "authorizer",
        "challenge",
        "client",
        "dpop",
        "error",
        "grant",
        "http",
        "issuer",
        "jwt",
        "login",
        "metadata",
        "obtain",
        "refresh",
        "registration",
        "server_hints",
        "store",
        "token",
        "token_response",
    ],
)];
