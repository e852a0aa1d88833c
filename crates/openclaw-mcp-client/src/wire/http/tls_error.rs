//! User-readable descriptions of TLS errors; those of the library are for programmers.

use std::time::UNIX_EPOCH;

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error, OtherError};

use crate::wire::call_error::ReachProblem;
use openclaw_tools::clock::Rfc3339;

/// Maximum number of a certificate's names that are shown.
const MAX_NAMES: usize = 5;

/// Classifies a TLS error.
pub(super) fn problem(error: &Error) -> ReachProblem {
    let Error::InvalidCertificate(problem) = error else { return ReachProblem::Tls };
    match problem {
        CertificateError::UnknownIssuer => ReachProblem::UnknownIssuer,
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => ReachProblem::Expired,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            ReachProblem::WrongName
        }
        CertificateError::Other(other) => match of_chain(other) {
            Some(webpki::Error::CaUsedAsEndEntity) => ReachProblem::CaAsServer,
            _ => ReachProblem::Certificate,
        },
        _ => ReachProblem::Certificate,
    }
}

/// Describes a TLS error.
pub(crate) fn describe(error: &Error) -> String {
    let words = match error {
        Error::InvalidCertificate(problem) => return of_certificate(problem),
        Error::AlertReceived(alert) => return of_alert(*alert),
        Error::InvalidMessage(_) => "the server does not speak TLS",
        Error::NoCertificatesPresented => "the server sent no certificate",
        Error::PeerIncompatible(_) => "no TLS version or cipher suite in common with the server",
        Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerMisbehaved(_)
        | Error::PeerSentOversizedRecord => "the server violates the TLS protocol",
        Error::DecryptError => "cannot decrypt data from the server",
        Error::InconsistentKeys(_) => "the key does not match the certificate",
        Error::InvalidCertRevocationList(_) => "invalid certificate revocation list",
        Error::FailedToGetCurrentTime => "the system time is not available",
        Error::FailedToGetRandomBytes => "no random numbers are available",
        Error::General(words) => return words.clone(),
        Error::Other(other) => return of_other(other),
        _ => "TLS failed",
    };
    words.to_owned()
}

fn of_certificate(problem: &CertificateError) -> String {
    let words = match problem {
        CertificateError::UnknownIssuer => "not signed by a trusted authority",
        CertificateError::Expired => "expired",
        CertificateError::ExpiredContext { not_after, .. } => {
            return format!("expired on {}", date(*not_after));
        }
        CertificateError::NotValidYet => "not valid yet",
        CertificateError::NotValidYetContext { not_before, .. } => {
            return format!("not valid before {}", date(*not_before));
        }
        CertificateError::NotValidForName => "not valid for this host",
        CertificateError::NotValidForNameContext { expected, presented } => {
            return names(&expected.to_str(), presented);
        }
        CertificateError::BadEncoding => "bad encoding",
        CertificateError::Revoked => "revoked",
        CertificateError::BadSignature => "bad signature",
        CertificateError::UnhandledCriticalExtension => "unknown critical extension",
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "unsupported signature algorithm"
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "not issued for servers"
        }
        CertificateError::UnknownRevocationStatus
        | CertificateError::ExpiredRevocationList
        | CertificateError::ExpiredRevocationListContext { .. }
        | CertificateError::InvalidOcspResponse => "unknown revocation status",
        CertificateError::Other(other) => return of_other(other),
        _ => "cannot be verified",
    };
    words.to_owned()
}

/// Returns the certificate chain error that `rustls` has no variant for.
fn of_chain(other: &OtherError) -> Option<&webpki::Error> {
    other.0.downcast_ref()
}

fn of_other(other: &OtherError) -> String {
    let words = match of_chain(other) {
        Some(webpki::Error::CaUsedAsEndEntity) => {
            "a CA certificate cannot be used as a server certificate"
        }
        Some(webpki::Error::EndEntityUsedAsCa) => {
            "signed with a certificate that is not a CA certificate"
        }
        Some(webpki::Error::UnsupportedCriticalExtension) => "unknown critical extension",
        Some(webpki::Error::UnsupportedCertVersion) => "not an X.509 version 3 certificate",
        Some(_) => "cannot be verified",
        // An error of the platform: quoted as is.
        None => return other.to_string(),
    };
    words.to_owned()
}

/// Describes an alert from the server.
fn of_alert(alert: AlertDescription) -> String {
    let words = match alert {
        AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => {
            "the server accepts none of the supported cipher suites"
        }
        AlertDescription::ProtocolVersion => {
            "the server accepts none of the supported TLS versions"
        }
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
            "the server requires a client certificate"
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied => "the server rejected the client certificate",
        AlertDescription::UnrecognisedName => "the server does not know this host name",
        _ => "the server aborted the handshake",
    };
    format!("{words} (alert {})", u8::from(alert))
}

fn date(time: UnixTime) -> String {
    let time = Rfc3339(UNIX_EPOCH + std::time::Duration::from_secs(time.as_secs())).to_string();
    time.split('T').next().unwrap_or_default().to_owned()
}

fn names(expected: &str, presented: &[String]) -> String {
    // Names include their kind: DnsName("a.example").
    let name = |text: &String| {
        let inside = text.split_once('(').map_or(text.as_str(), |(_, inside)| inside);
        inside.trim_end_matches(')').trim_matches('"').to_owned()
    };
    let mut known: Vec<String> = presented.iter().take(MAX_NAMES).map(name).collect();
    if presented.len() > MAX_NAMES {
        known.push("others".to_owned());
    }
    match known.split_last() {
        None => format!("names no host; expected {expected}"),
        Some((one, [])) => format!("valid for {one}, not for {expected}"),
        Some((last, rest)) => {
            format!("valid for {} and {last}, not for {expected}", rest.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::pki_types::ServerName;
    use rustls::{InconsistentKeys, InvalidMessage, PeerIncompatible, PeerMisbehaved};

    use super::*;

    fn chain(error: webpki::Error) -> Error {
        CertificateError::Other(OtherError(Arc::new(error))).into()
    }

    #[test]
    fn errors_are_described_in_plain_english() {
        let time = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        for (error, expected) in [
            (CertificateError::UnknownIssuer.into(), "not signed by a trusted authority"),
            (
                CertificateError::ExpiredContext { time: time(99_999), not_after: time(90_000) }
                    .into(),
                "expired on 1970-01-02",
            ),
            (CertificateError::ApplicationVerificationFailure.into(), "cannot be verified"),
            (
                chain(webpki::Error::CaUsedAsEndEntity),
                "a CA certificate cannot be used as a server \
                certificate",
            ),
            (chain(webpki::Error::MaximumPathDepthExceeded), "cannot be verified"),
            (chain(webpki::Error::UnsupportedCertVersion), "not an X.509 version 3 certificate"),
            (
                Error::AlertReceived(AlertDescription::HandshakeFailure),
                "none of the supported cipher suites",
            ),
            (
                Error::AlertReceived(AlertDescription::Unknown(99)),
                "aborted the handshake (alert 99)",
            ),
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), "does not speak TLS"),
            (PeerIncompatible::NoCipherSuitesInCommon.into(), "cipher suite in common"),
            (PeerMisbehaved::TooManyEmptyFragments.into(), "violates the TLS protocol"),
            (
                Error::InconsistentKeys(InconsistentKeys::KeyMismatch),
                "does not match the certificate",
            ),
            (Error::BadMaxFragmentSize, "TLS failed"),
        ] {
            let said = describe(&error);
            assert!(said.contains(expected), "{error:?}: {said}");
            // No Rust identifiers.
            let is_camel = |word: &str| word.chars().skip(1).any(char::is_uppercase);
            let plain = said.replace("TLS", "").replace("CA", "");
            assert!(!plain.split(' ').any(is_camel), "{said}");
        }
    }

    #[test]
    fn the_names_of_a_certificate_are_shown() {
        let wrong = |presented: &[&str]| {
            let expected = ServerName::try_from("a.example").unwrap();
            let presented = presented.iter().map(|name| (*name).to_owned()).collect();
            describe(&CertificateError::NotValidForNameContext { expected, presented }.into())
        };
        assert_eq!(wrong(&[]), "names no host; expected a.example");
        let one = wrong(&[r#"DnsName("b.example")"#]);
        assert_eq!(one, "valid for b.example, not for a.example");
        let two = wrong(&[r#"DnsName("b.example")"#, "IpAddress(127.0.0.1)"]);
        assert_eq!(two, "valid for b.example and 127.0.0.1, not for a.example");
    }
}
