//! A TLS server with a self-signed certificate.

use std::{net::SocketAddr, sync::Arc};

use axum::serve::Listener;
use rcgen::CertifiedKey;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer},
    server::TlsStream,
};

use super::Server;

/// Starts the server. Returns it with its certificate in PEM form.
pub async fn start(router: axum::Router) -> (Server, String) {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("certificate");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("key");
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("server config");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = Server::listen(router, |listener| TlsListener { listener, acceptor }).await;
    (server, cert.pem())
}

struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.listener).await;
            // A client that does not trust the certificate disconnects.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        Listener::local_addr(&self.listener)
    }
}
