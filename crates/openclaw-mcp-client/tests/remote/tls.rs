//! Certificates: which are trusted, and the errors for those that are not.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use openclaw_mcp_client::connection::remote::{RemoteError, RemotePlan};
use openclaw_mcp_client::wire::ReachProblem;
use openclaw_testkit::{HttpServer, Script, TestServer};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::support::{open, plan};

/// A server behind TLS, with a certificate of an unknown CA.
struct Secured {
    url: String,
    ca_file: PathBuf,
    /// A client certificate of the same CA, and its key.
    client: [PathBuf; 2],
    _folder: tempfile::TempDir,
    _server: HttpServer,
    _tasks: JoinSet<()>,
}

impl Secured {
    /// Starts a server with a certificate for `host`, modified by `adjust`.
    async fn start(host: &str, adjust: impl FnOnce(&mut CertificateParams)) -> Self {
        Self::start_with(host, adjust, false).await
    }

    /// Like [`start`](Self::start), but the server may require a client certificate.
    async fn start_with(
        host: &str,
        adjust: impl FnOnce(&mut CertificateParams),
        wants_client: bool,
    ) -> Self {
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let own = ca.self_signed(&ca_key).unwrap();
        let (ca_pem, ca_der) = (own.pem(), own.der().clone());
        let issuer = Issuer::new(ca, ca_key);
        let client_key = KeyPair::generate().unwrap();
        let client = CertificateParams::new(["client".to_owned()]).unwrap();
        let client = client.signed_by(&client_key, &issuer).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        adjust(&mut params);
        let (certificate, ca_pem) = match params.is_ca {
            IsCa::NoCa => (params.signed_by(&key, &issuer).unwrap(), ca_pem),
            // A certificate with explicit basic constraints is self-signed.
            _ => {
                let own = params.self_signed(&key).unwrap();
                let pem = own.pem();
                (own, pem)
            }
        };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = if wants_client {
            let mut roots = RootCertStore::empty();
            roots.add(ca_der).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            config.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            config.with_no_client_auth()
        };
        let config = config
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));

        let server = TestServer::http(&Script::new());
        let behind = server.port();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://127.0.0.1:{}/mcp", listener.local_addr().unwrap().port());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut tunnels = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                tunnels.spawn(tunnel(acceptor.clone(), stream, behind));
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let ca_file = folder.path().join("ca.pem");
        std::fs::write(&ca_file, ca_pem).unwrap();
        let client_files = ["client.pem", "client.key"].map(|name| folder.path().join(name));
        for (file, pem) in client_files.iter().zip([client.pem(), client_key.serialize_pem()]) {
            std::fs::write(file, pem).unwrap();
        }
        Self { url, ca_file, client: client_files, _folder: folder, _server: server, _tasks: tasks }
    }

    fn trusted(&self) -> RemotePlan {
        let mut plan = plan(&self.url);
        plan.config.tls.ca_file = Some(self.ca_file.clone());
        plan
    }
}

async fn tunnel(acceptor: TlsAcceptor, stream: TcpStream, behind: u16) -> io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let mut server = TcpStream::connect(("127.0.0.1", behind)).await?;
    copy_bidirectional(&mut stream, &mut server).await.map(|_| ())
}

async fn works(plan: RemotePlan) {
    let mut opened = open(plan).await.unwrap();
    assert!(!opened.rmcp.list_all_tools().await.unwrap().is_empty());
    let _ = opened.rmcp.close().await;
}

async fn problem(plan: RemotePlan) -> ReachProblem {
    let error = open(plan).await.unwrap_err();
    assert!(error.hint().is_some());
    let RemoteError::Unreachable(unreachable) = error else { panic!("{error:?}") };
    unreachable.problem
}

#[tokio::test]
async fn a_custom_ca_is_trusted_where_it_is_configured() {
    let secured = Secured::start("127.0.0.1", |_| {}).await;
    works(secured.trusted()).await;
    assert_eq!(problem(plan(&secured.url)).await, ReachProblem::UnknownIssuer);

    let mut by_environment = plan(&secured.url);
    by_environment.network.cert_file = Some(secured.ca_file.clone());
    works(by_environment).await;

    let mut unchecked = plan(&secured.url);
    unchecked.config.tls.verify = false;
    works(unchecked).await;
}

#[tokio::test]
async fn a_certificate_for_another_host_or_time_is_rejected_with_its_reason() {
    let other = Secured::start("elsewhere.example", |_| {}).await;
    assert_eq!(problem(other.trusted()).await, ReachProblem::WrongName);
    let old = Secured::start("127.0.0.1", |params| {
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    });
    assert_eq!(problem(old.await.trusted()).await, ReachProblem::Expired);
}

#[tokio::test]
async fn a_ca_certificate_is_rejected_as_server_certificate_and_the_hint_works() {
    let own = |is_ca| Secured::start("127.0.0.1", move |params| params.is_ca = is_ca);
    let authority = own(IsCa::Ca(BasicConstraints::Unconstrained)).await;
    for plan in [plan(&authority.url), authority.trusted()] {
        let error = open(plan).await.unwrap_err();
        let said = error.to_string();
        let expected = "the certificate is a CA certificate: a CA certificate cannot be used as a server certificate";
        assert_eq!(said, expected);
        let hint = error.hint().unwrap();
        assert!(
            hint.contains("basicConstraints=CA:FALSE") && hint.contains("tls.caFile"),
            "{hint}"
        );
    }
    works(own(IsCa::ExplicitNoCa).await.trusted()).await;
}

#[tokio::test]
async fn a_port_without_tls_is_reported() {
    let server = TestServer::http(&Script::new());
    let url = server.url().replace("http://", "https://");
    assert_eq!(problem(plan(&url)).await, ReachProblem::Tls);
}

#[tokio::test]
async fn plain_http_to_a_tls_port_hints_at_https() {
    let secured = Secured::start("127.0.0.1", |_| {}).await;
    let error = open(plan(&secured.url.replace("https://", "http://"))).await.unwrap_err();
    assert!(error.hint().unwrap().contains("https://"), "{error}: {:?}", error.hint());
}

#[tokio::test]
async fn files_without_certificates_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "nothing").unwrap();
    for file in [empty, folder.path().join("missing.pem")] {
        let mut plan = plan("https://nobody.invalid/mcp");
        plan.config.tls.ca_file = Some(file.clone());
        let error = open(plan).await.unwrap_err();
        assert!(matches!(error, RemoteError::Setting { .. }), "{error:?}");
        assert!(error.to_string().contains("tls.caFile"), "{error}");
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
        assert_eq!(error.hint().unwrap(), "correct `tls.caFile`");
    }
}

#[tokio::test]
async fn a_server_that_requires_a_client_certificate_gets_the_configured_one() {
    let secured = Secured::start_with("127.0.0.1", |_| {}, true).await;
    let [certificate, key] = &secured.client;
    let mut plan = secured.trusted();
    plan.config.tls.client_cert = Some(certificate.clone());
    let without_key = open(plan.clone()).await.unwrap_err();
    assert!(without_key.to_string().contains("no private key in"), "{without_key}");
    plan.config.tls.client_key = Some(key.clone());
    works(plan.clone()).await;

    // Both in one file.
    let both = certificate.with_extension("both");
    let text = |file| std::fs::read_to_string(file).unwrap();
    std::fs::write(&both, text(certificate) + &text(key)).unwrap();
    plan.config.tls.client_cert = Some(both);
    plan.config.tls.client_key = None;
    works(plan).await;
}
