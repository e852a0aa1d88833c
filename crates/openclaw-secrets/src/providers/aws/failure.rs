//! Converts AWS errors. The service's messages are omitted, except for the error code.

use reqsign_core::Error;

use crate::{ResolveErrorKind as Kind, resolve_error::ProviderFailure};

/// Marks errors with a message of ours. Those of the library may quote a service.
const OWN: &str = "own";

/// Extracts the code from `com.amazonaws.secretsmanager#ResourceNotFoundException:http://…`.
pub(super) fn code(text: &str) -> Option<&str> {
    let code = text.rsplit_once('#').map_or(text, |(_, code)| code);
    let code = code.split(':').next().unwrap_or_default();
    let is_code = (1..=64).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_alphanumeric());
    is_code.then_some(code)
}

/// Converts an error response.
pub(super) fn refusal(status: u16, code: Option<&str>, name: &str) -> ProviderFailure {
    match code {
        Some("ResourceNotFoundException") => ProviderFailure::new(
            Kind::NotFound,
            format!("secret `{name}` or its version not found in AWS"),
        )
        .hint("run `aws secretsmanager list-secrets` to list the secrets of the region"),
        Some("InvalidRequestException") => {
            let cause = "AWS cannot return the secret; it may be scheduled for deletion";
            ProviderFailure::new(Kind::NotFound, cause)
        }
        Some("InternalServiceError") => busy_service("internal error"),
        Some("DecryptionFailure") => {
            ProviderFailure::new(Kind::Denied, "AWS cannot decrypt the secret with its KMS key")
                .hint("grant the account `kms:Decrypt` on the key")
        }
        Some("ThrottlingException") => busy_service("too many requests"),
        Some(code @ ("AccessDeniedException" | "AccessDenied")) => {
            ProviderFailure::new(Kind::Denied, format!("AWS denied access to the secret ({code})"))
                .hint("grant the account `secretsmanager:GetSecretValue` on it")
        }
        Some(
            code @ ("UnrecognizedClientException"
            | "InvalidSignatureException"
            | "ExpiredTokenException"
            | "IncompleteSignature"
            | "InvalidClientTokenId"
            | "SignatureDoesNotMatch"),
        ) => ProviderFailure::new(Kind::Denied, format!("AWS rejected the credentials ({code})"))
            .hint("log in again with `aws sso login` or `aws configure`"),
        Some(code) => ProviderFailure::new(Kind::Failed, format!("AWS returned the error {code}")),
        // Not every error has a code: a gateway returns a bare status.
        None => match status {
            401 | 403 => ProviderFailure::new(Kind::Denied, "AWS rejected the credentials")
                .hint("log in again with `aws sso login` or `aws configure`"),
            429 | 500..=599 => busy_service(&format!("HTTP {status}")),
            _ => ProviderFailure::new(Kind::Failed, format!("AWS returned HTTP {status}")),
        },
    }
}

pub(super) fn no_answer(error: &reqwest::Error) -> ProviderFailure {
    unreachable_service(if error.is_timeout() { "timed out" } else { "connection failed" })
}

/// Creates the error for a configured source of credentials that cannot be used.
pub(super) fn unusable_source(why: impl Into<String>) -> Error {
    Error::config_invalid(why).with_context(OWN)
}

pub(super) fn no_credentials(error: &Error) -> ProviderFailure {
    if error.context().iter().any(|context| context == OWN) {
        return ProviderFailure::new(Kind::NotConfigured, error.to_string()).hint(
            "check `secrets.aws.profile` or `AWS_PROFILE`, and the profile in `~/.aws/config`",
        );
    }
    ProviderFailure::new(Kind::NotConfigured, "no AWS credentials found")
        .hint("run `aws configure` or `aws sso login`, or set `secrets.aws.profile`")
}

pub(super) fn not_sent() -> ProviderFailure {
    ProviderFailure::new(Kind::Failed, "cannot create the request to AWS")
        .hint("check `secrets.aws.endpoint` and `AWS_ENDPOINT_URL`")
}

pub(super) fn unreachable_service(why: &str) -> ProviderFailure {
    unavailable(why).hint("check the network, the region and the endpoint")
}

fn busy_service(why: &str) -> ProviderFailure {
    unavailable(why).hint("try again later")
}

fn unavailable(why: &str) -> ProviderFailure {
    let cause = format!("AWS Secrets Manager is unavailable: {why}");
    ProviderFailure::new(Kind::Unreachable, cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_in_each_form_and_other_text_is_not_a_code() {
        assert_eq!(code("AccessDenied"), Some("AccessDenied"));
        assert_eq!(code("com.amazonaws.x#NotFound"), Some("NotFound"));
        assert_eq!(code("NotFound:http://internal.amazon.com/"), Some("NotFound"));
        assert_eq!(code("User: x is not authorized"), Some("User"));
        assert_eq!(code("not authorized"), None);
        assert_eq!(code(""), None);
    }

    #[test]
    fn a_service_that_cannot_answer_now_is_unreachable() {
        for code in [Some("ThrottlingException"), Some("InternalServiceError"), None] {
            assert_eq!(refusal(503, code, "x").kind, Kind::Unreachable);
        }
        assert_eq!(refusal(403, None, "x").kind, Kind::Denied);
        assert_eq!(refusal(400, Some("DecryptionFailure"), "x").kind, Kind::Denied);
        assert_eq!(refusal(400, Some("ExpiredTokenException"), "x").kind, Kind::Denied);
        assert_eq!(refusal(400, Some("Other"), "x").kind, Kind::Failed);
    }
}
