//! The TLS configuration: trusted CAs and the client certificate (T12).

use std::path::Path;
use std::sync::Arc;

use openclaw_config::TlsSettings;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;

use super::connector::bad;
use super::{RemoteError, RemotePlan};
use crate::wire::http::describe_tls_error;

/// Maximum size of a PEM file, in bytes.
const MAX_PEM: u64 = 8 * 1024 * 1024;

type Certificates = Vec<CertificateDer<'static>>;
type Trust = Arc<dyn ServerCertVerifier>;

/// The trusted CAs.
enum Roots {
    /// Those of the system and these.
    System(Certificates),
    /// Only these.
    Only(Certificates),
}

/// Returns the TLS configuration of a server. Without `needs_tls`, no CAs are loaded, and none are
/// trusted.
pub(super) async fn config(
    plan: &RemotePlan,
    needs_tls: bool,
) -> Result<ClientConfig, RemoteError> {
    let settings = &plan.config.tls;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let identity = identity(settings).await?;
    let failed = |error: Error| bad("`tls`", describe_tls_error(&error));
    let distrusted = |error: Error| bad(setting_of_roots(plan), describe_tls_error(&error));
    let trust: Option<Trust> = match settings.verify {
        _ if !needs_tls => None,
        true => {
            let verifier = verifier(roots(plan).await?, Arc::clone(&provider)).await;
            Some(verifier.map_err(distrusted)?)
        }
        false => Some(Arc::new(Unverified(Arc::clone(&provider)))),
    };
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(failed)?;
    let builder = match trust {
        Some(trust) => builder.dangerous().with_custom_certificate_verifier(trust),
        None => builder.with_root_certificates(RootCertStore::empty()),
    };
    match identity {
        None => Ok(builder.with_no_client_auth()),
        Some((certificates, key)) => builder
            .with_client_auth_cert(certificates, key)
            .map_err(|error| bad("`tls.clientCert`", describe_tls_error(&error))),
    }
}

/// Runs on a blocking thread: reading the system's certificates is slow.
async fn verifier(roots: Roots, provider: Arc<CryptoProvider>) -> Result<Trust, Error> {
    let made = tokio::task::spawn_blocking(move || match roots {
        Roots::Only(only) => only_these(only, provider),
        Roots::System(more) => {
            match Verifier::new_with_extra_roots(more.clone(), Arc::clone(&provider)) {
                Ok(verifier) => Ok(Arc::new(verifier) as Trust),
                // A system without certificates, such as a minimal container: use the bundled ones.
                Err(_) => only_these(bundled().chain(more), provider),
            }
        }
    });
    match made.await {
        Ok(made) => made,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

fn only_these(
    certificates: impl IntoIterator<Item = CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
) -> Result<Trust, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate)?;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build();
    verifier.map(|verifier| verifier as Trust).map_err(|error| Error::General(error.to_string()))
}

fn bundled() -> impl Iterator<Item = CertificateDer<'static>> {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned()
}

/// Returns the setting that the additional CAs come from.
fn setting_of_roots(plan: &RemotePlan) -> &'static str {
    match (&plan.config.tls.ca_file, &plan.network.cert_file) {
        (Some(_), _) => "`tls.caFile`",
        (None, Some(_)) => "`SSL_CERT_FILE`",
        (None, None) => "`tls`",
    }
}

async fn roots(plan: &RemotePlan) -> Result<Roots, RemoteError> {
    let mut more = Vec::new();
    if let Some(file) = &plan.config.tls.ca_file {
        more = certificates("`tls.caFile`", file).await?;
    }
    match &plan.network.cert_file {
        None => Ok(Roots::System(more)),
        Some(file) => {
            more.extend(certificates("`SSL_CERT_FILE`", file).await?);
            Ok(Roots::Only(more))
        }
    }
}

/// Returns the CAs of the settings as PEM, for another client.
pub(super) async fn extra_roots(settings: &TlsSettings) -> Result<Vec<Vec<u8>>, RemoteError> {
    const SETTING: &str = "`tls.caFile`";
    let Some(file) = &settings.ca_file else { return Ok(Vec::new()) };
    let pem = read(SETTING, file).await?;
    // Checked here, where the file is known.
    certificates_in(&pem, SETTING, file)?;
    Ok(vec![pem])
}

async fn certificates(setting: &str, file: &Path) -> Result<Certificates, RemoteError> {
    let pem = read(setting, file).await?;
    certificates_in(&pem, setting, file)
}

fn certificates_in(pem: &[u8], setting: &str, file: &Path) -> Result<Certificates, RemoteError> {
    let certificates: Result<Certificates, pem::Error> =
        CertificateDer::pem_slice_iter(pem).collect();
    let certificates =
        certificates.map_err(|error| bad(setting, format!("{}: {error}", file.display())))?;
    if certificates.is_empty() {
        return Err(bad(setting, format!("no certificate in {}", file.display())));
    }
    Ok(certificates)
}

type Identity = (Certificates, PrivateKeyDer<'static>);

/// Reads the client certificate; its key may be in the same file.
async fn identity(settings: &TlsSettings) -> Result<Option<Identity>, RemoteError> {
    const CERTIFICATE: &str = "`tls.clientCert`";
    let Some(file) = &settings.client_cert else { return Ok(None) };
    let pem = read(CERTIFICATE, file).await?;
    let certificates = certificates_in(&pem, CERTIFICATE, file)?;
    let (setting, file, pem) = match &settings.client_key {
        None => (CERTIFICATE, file, pem),
        Some(key) => ("`tls.clientKey`", key, read("`tls.clientKey`", key).await?),
    };
    match PrivateKeyDer::from_pem_slice(&pem) {
        Ok(key) => Ok(Some((certificates, key))),
        Err(pem::Error::NoItemsFound) => {
            Err(bad(setting, format!("no private key in {}", file.display())))
        }
        Err(error) => Err(bad(setting, format!("{}: {error}", file.display()))),
    }
}

async fn read(setting: &str, file: &Path) -> Result<Vec<u8>, RemoteError> {
    let failed = |error: std::io::Error| bad(setting, format!("{}: {error}", file.display()));
    let path = file.to_owned();
    let reading = tokio::task::spawn_blocking(move || openclaw_files::read(&path, MAX_PEM));
    reading.await.map_err(std::io::Error::other).flatten().map_err(failed)
}

/// Accepts every certificate, for `tls.verify: false`.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
