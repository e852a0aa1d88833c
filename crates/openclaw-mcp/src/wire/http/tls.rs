//! What is wrong with a secure connection, in words: the library tells it to programmers.

use std::time::UNIX_EPOCH;

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error, OtherError};

use crate::wire::call_error::ReachProblem;
use openclaw_tools::clock::Rfc3339;

/// How many of the names in a certificate are shown.
const MAX_NAMES: usize = 5;

/// What kind of problem it is.
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

/// What exactly is wrong.
pub(crate) fn words(error: &Error) -> String {
    let words = match error {
        Error::InvalidCertificate(problem) => return of_certificate(problem),
        Error::AlertReceived(alert) => return of_alert(*alert),
        Error::InvalidMessage(_) => "what answers there does not speak TLS",
        Error::NoCertificatesPresented => "the server has no certificate",
        Error::PeerIncompatible(_) => {
            "the server knows no version of TLS, or no way to encrypt, that is known here"
        }
        Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerMisbehaved(_)
        | Error::PeerSentOversizedRecord => "the server does not keep to the rules of TLS",
        Error::DecryptError => "what the server sends cannot be decrypted",
        Error::InconsistentKeys(_) => "the key and the certificate do not belong together",
        Error::InvalidCertRevocationList(_) => "a list of revoked certificates cannot be used",
        Error::FailedToGetCurrentTime => "this machine does not know the time",
        Error::FailedToGetRandomBytes => "this machine has no random numbers",
        Error::General(words) => return words.clone(),
        Error::Other(other) => return of_other(other),
        _ => "TLS failed",
    };
    words.to_owned()
}

fn of_certificate(problem: &CertificateError) -> String {
    let words = match problem {
        CertificateError::UnknownIssuer => "no authority that is trusted here has signed it",
        CertificateError::Expired => "it has expired",
        CertificateError::ExpiredContext { not_after, .. } => {
            return format!("it expired on {}", date(*not_after));
        }
        CertificateError::NotValidYet => "it is not valid yet",
        CertificateError::NotValidYetContext { not_before, .. } => {
            return format!("it is valid from {} on", date(*not_before));
        }
        CertificateError::NotValidForName => "it does not name this host",
        CertificateError::NotValidForNameContext { expected, presented } => {
            return names(&expected.to_str(), presented);
        }
        CertificateError::BadEncoding => "it cannot be read",
        CertificateError::Revoked => "it was revoked",
        CertificateError::BadSignature => "its signature is wrong",
        CertificateError::UnhandledCriticalExtension => {
            "it demands something that is not known here"
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "it is signed in a way that is not supported"
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "it is not meant for servers"
        }
        CertificateError::UnknownRevocationStatus
        | CertificateError::ExpiredRevocationList
        | CertificateError::ExpiredRevocationListContext { .. }
        | CertificateError::InvalidOcspResponse => "it is not known whether it was revoked",
        CertificateError::Other(other) => return of_other(other),
        _ => "it cannot be verified",
    };
    words.to_owned()
}

/// What is wrong with a chain of certificates, of what has no other name.
fn of_chain(other: &OtherError) -> Option<&webpki::Error> {
    other.0.downcast_ref()
}

fn of_other(other: &OtherError) -> String {
    let words = match of_chain(other) {
        Some(webpki::Error::CaUsedAsEndEntity) => "a server cannot use that for itself",
        Some(webpki::Error::EndEntityUsedAsCa) => {
            "it is signed with a certificate that is none of an authority (CA)"
        }
        Some(webpki::Error::UnsupportedCertVersion) => "it is not of version 3 of X.509",
        Some(_) => "it cannot be verified",
        // Of the system: in its words.
        None => return other.to_string(),
    };
    words.to_owned()
}

/// What the server says.
fn of_alert(alert: AlertDescription) -> String {
    let words = match alert {
        AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => {
            "the server accepts none of the ways to encrypt that are known here"
        }
        AlertDescription::ProtocolVersion => {
            "the server accepts no version of TLS that is known here"
        }
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
            "the server wants a certificate of ours"
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied => "the server refuses our certificate",
        AlertDescription::UnrecognisedName => "the server does not know this host name",
        _ => "the server broke it off",
    };
    format!("{words} (alert {})", u8::from(alert))
}

fn date(time: UnixTime) -> String {
    let time = Rfc3339(UNIX_EPOCH + std::time::Duration::from_secs(time.as_secs())).to_string();
    time.split('T').next().unwrap_or_default().to_owned()
}

fn names(expected: &str, presented: &[String]) -> String {
    // They come with their kind: DnsName("a.example").
    let name = |text: &String| {
        let inside = text.split_once('(').map_or(text.as_str(), |(_, inside)| inside);
        inside.trim_end_matches(')').trim_matches('"').to_owned()
    };
    let mut known: Vec<String> = presented.iter().take(MAX_NAMES).map(name).collect();
    if presented.len() > MAX_NAMES {
        known.push("others".to_owned());
    }
    match known.split_last() {
        None => format!("it names no host, and so not {expected}"),
        Some((one, [])) => format!("it is for {one}, and not for {expected}"),
        Some((last, rest)) => {
            format!("it is for {} and {last}, and not for {expected}", rest.join(", "))
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
    fn whatever_is_wrong_is_told_in_words() {
        let time = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        for (error, expected) in [
            (CertificateError::UnknownIssuer.into(), "no authority that is trusted here"),
            (
                CertificateError::ExpiredContext { time: time(99_999), not_after: time(90_000) }
                    .into(),
                "it expired on 1970-01-02",
            ),
            (CertificateError::ApplicationVerificationFailure.into(), "it cannot be verified"),
            (chain(webpki::Error::CaUsedAsEndEntity), "a server cannot use that for itself"),
            (chain(webpki::Error::MaximumPathDepthExceeded), "it cannot be verified"),
            (chain(webpki::Error::UnsupportedCertVersion), "it is not of version 3 of X.509"),
            (Error::AlertReceived(AlertDescription::HandshakeFailure), "none of the ways"),
            (Error::AlertReceived(AlertDescription::Unknown(99)), "broke it off (alert 99)"),
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), "does not speak TLS"),
            (PeerIncompatible::NoCipherSuitesInCommon.into(), "known here"),
            (PeerMisbehaved::TooManyEmptyFragments.into(), "the rules of TLS"),
            (Error::InconsistentKeys(InconsistentKeys::KeyMismatch), "do not belong together"),
            (Error::BadMaxFragmentSize, "TLS failed"),
        ] {
            let said = words(&error);
            assert!(said.contains(expected), "{error:?}: {said}");
            // `CamelCase` and `Braces(…)` are for programmers.
            let is_camel = |word: &str| word.chars().skip(1).any(char::is_uppercase);
            let plain = said.replace("TLS", "").replace("CA", "");
            assert!(!plain.split(' ').any(is_camel), "{said}");
        }
    }

    #[test]
    fn the_names_of_a_certificate_are_told() {
        let wrong = |presented: &[&str]| {
            let expected = ServerName::try_from("a.example").unwrap();
            let presented = presented.iter().map(|name| (*name).to_owned()).collect();
            words(&CertificateError::NotValidForNameContext { expected, presented }.into())
        };
        assert_eq!(wrong(&[]), "it names no host, and so not a.example");
        let one = wrong(&[r#"DnsName("b.example")"#]);
        assert_eq!(one, "it is for b.example, and not for a.example");
        let two = wrong(&[r#"DnsName("b.example")"#, "IpAddress(127.0.0.1)"]);
        assert_eq!(two, "it is for b.example and 127.0.0.1, and not for a.example");
    }
}
