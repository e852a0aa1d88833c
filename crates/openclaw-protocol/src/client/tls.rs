//! TLS to a gateway: the system's certificate authorities, or one pinned certificate.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, SignatureScheme,
};
use rustls_platform_verifier::Verifier;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;

use super::{Address, ConnectError};
use crate::socket::Tcp;

/// The SHA-256 fingerprint of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

/// The text is not a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a SHA-256 fingerprint: 64 hexadecimal digits, with or without colons")]
pub struct InvalidFingerprint;

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;

    /// Accepts the formats of `openssl x509 -fingerprint -sha256` and of the Node gateway.
    fn from_str(text: &str) -> Result<Self, InvalidFingerprint> {
        let text = text.trim();
        let prefix = text
            .get(..7)
            .filter(|it| it.eq_ignore_ascii_case("sha256:") || it.eq_ignore_ascii_case("sha256="));
        let digits: Vec<u8> = text[prefix.map_or(0, str::len)..]
            .chars()
            .filter(|c| !matches!(c, ':' | ' '))
            .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
            .collect::<Option<_>>()
            .ok_or(InvalidFingerprint)?;
        let (pairs, rest) = digits.as_chunks::<2>();
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        match (bytes.try_into(), rest) {
            (Ok(bytes), []) => Ok(Self(bytes)),
            _ => Err(InvalidFingerprint),
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02X}", if index == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

/// Performs the TLS handshake with a gateway.
pub(super) async fn secure(
    stream: TcpStream,
    address: &Address,
    pin: Option<Fingerprint>,
) -> Result<Tcp, ConnectError> {
    let failed = |error: String| ConnectError::Tls { address: address.to_string(), error };
    let name = ServerName::try_from(address.host().to_owned());
    let name = name.map_err(|error| failed(error.to_string()))?;
    let config = config(pin).await.map_err(|error| failed(error.to_string()))?;
    Tcp::secured(stream, Arc::new(config), name).await.map_err(|error| match found(&error) {
        Some(found) => ConnectError::OtherCertificate { address: address.to_string(), found },
        None => failed(described(&error)),
    })
}

/// Describes a failed handshake. Some words of the library are for programmers.
fn described(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::InvalidMessage(_)) => "the gateway does not use TLS".to_owned(),
        Some(Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => "the certificate is not signed by a trusted authority".to_owned(),
        _ => error.to_string(),
    }
}

async fn config(pin: Option<Fingerprint>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match pin {
        Some(pin) => Arc::new(Pinned { pin, provider: Arc::clone(&provider) }),
        None => {
            let provider = Arc::clone(&provider);
            // Reading the certificates of the system blocks.
            let made = tokio::task::spawn_blocking(move || Verifier::new(provider)).await;
            Arc::new(made.map_err(|error| Error::General(error.to_string()))??)
        }
    };
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    Ok(builder.with_no_client_auth())
}

/// Accepts one certificate only, whatever its issuer and its name.
#[derive(Debug)]
struct Pinned {
    pin: Fingerprint,
    provider: Arc<CryptoProvider>,
}

/// The gateway has another certificate than the pinned one.
#[derive(Debug, thiserror::Error)]
#[error("the certificate has the fingerprint {0}")]
struct NotPinned(Fingerprint);

/// Returns the fingerprint of a certificate that was rejected because it is not the pinned one.
fn found(error: &io::Error) -> Option<Fingerprint> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    let Error::InvalidCertificate(CertificateError::Other(OtherError(other))) = error else {
        return None;
    };
    let other: &(dyn StdError + 'static) = &**other;
    other.downcast_ref::<NotPinned>().map(|NotPinned(found)| *found)
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = Fingerprint::of(certificate);
        if found == self.pin {
            return Ok(ServerCertVerified::assertion());
        }
        let other = OtherError(Arc::new(NotPinned(found)));
        Err(Error::InvalidCertificate(CertificateError::Other(other)))
    }

    // The pin is worth nothing without proof that the peer has the certificate's key.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_parsed_in_the_usual_formats() {
        let colons = Fingerprint([0xab; 32]).to_string();
        assert_eq!(colons.len(), 95);
        let plain = "ab".repeat(32);
        for text in [&colons, &plain, &format!("sha256:{plain}"), &format!("SHA256={colons}")] {
            assert_eq!(text.parse(), Ok(Fingerprint([0xab; 32])), "{text}");
        }
        for text in ["", "ab", "sha256:", &"ab".repeat(20), &"xy".repeat(32), &"a".repeat(63)] {
            assert_eq!(text.parse::<Fingerprint>(), Err(InvalidFingerprint), "{text}");
        }
    }
}
