//! Tests of [`super`].

use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolving};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::*;
use crate::test_server::{Reply, Request, TestServer};

const WHAT: &str = "a document";

fn client(trusted: &[&str]) -> AuthHttpClient {
    let trusted = trusted.iter().map(|url| url.parse().unwrap()).collect();
    AuthHttpClient::new(HttpOptions { trusted, ..HttpOptions::default() }).unwrap()
}

fn checked(http: &AuthHttpClient, url: &str) -> Result<(), &'static str> {
    match http.check(WHAT, &url.parse().unwrap()) {
        Err(AuthError::Refused { cause, .. }) => Err(cause),
        other => {
            other.unwrap();
            Ok(())
        }
    }
}

#[test]
fn a_public_server_cannot_name_private_addresses() {
    let http = client(&["https://mcp.example.com/mcp"]);
    for good in ["https://as.example.org/x", "https://1.1.1.1/", "https://mcp.example.com/"] {
        assert_eq!(checked(&http, good), Ok(()), "{good}");
    }
    for (bad, cause) in [
        ("http://as.example.org/", "not https"),
        ("http://1.1.1.1/", "not https"),
        ("ftp://as.example.org/", "not https"),
        ("file:///etc/passwd", "not a web URL"),
        ("javascript:alert(1)", "not a web URL"),
        ("https://me:pw@as.example.org/", "a user name or password in the URL"),
        ("http://127.0.0.1:8080/", "a private address"),
        ("http://localhost:8080/", "a private address"),
        ("https://app.localhost/", "a private address"),
        ("https://[::1]/", "a private address"),
        ("https://10.0.0.1/", "a private address"),
        ("https://169.254.169.254/latest", "a private address"),
        ("https://0x7f.1/", "a private address"),
        ("https://[::ffff:10.0.0.1]/", "a private address"),
    ] {
        assert_eq!(checked(&http, bad), Err(cause), "{bad}");
    }
}

#[test]
fn a_configured_host_may_be_private_but_only_that_one() {
    let http = client(&["https://10.0.0.1/mcp", "https://10.0.0.2/"]);
    assert_eq!(checked(&http, "https://10.0.0.1:9000/x"), Ok(()));
    assert_eq!(checked(&http, "https://10.0.0.2/x"), Ok(()));
    assert!(checked(&http, "https://10.0.0.3/").is_err());
    assert_eq!(checked(&http, "http://10.0.0.1/"), Err("not https"));
    let here = client(&["http://127.0.0.1:8000/mcp"]);
    for good in ["http://127.0.0.1:1/", "http://localhost:1/", "https://[::1]/"] {
        assert_eq!(checked(&here, good), Ok(()), "{good}");
    }
    assert!(checked(&here, "https://10.0.0.3/").is_err());
}

/// Returns a client with one proxy for all URLs.
fn behind(proxy: &str) -> AuthHttpClient {
    let proxy: Url = proxy.parse().unwrap();
    let choice: ProxyChoice = Arc::new(move |_| Some(proxy.clone()));
    AuthHttpClient::new(HttpOptions { proxy: Some(choice), ..HttpOptions::default() }).unwrap()
}

#[test]
fn behind_a_proxy_names_that_are_never_public_are_refused() {
    let http = behind("http://proxy.example:3128");
    assert_eq!(checked(&http, "https://as.example.org/"), Ok(()));
    for bad in ["https://db/", "https://metadata.google.internal/", "https://proxy.example/"] {
        assert!(checked(&http, bad).is_err(), "{bad}");
    }
}

#[test]
fn bad_options_are_reported() {
    let error = behind("ftp://x.example").check(WHAT, &"https://a.example/".parse().unwrap());
    assert!(matches!(error, Err(AuthError::Setting { setting: "proxy", .. })), "{error:?}");
    let extra_roots = vec![b"nonsense".to_vec()];
    assert!(AuthHttpClient::new(HttpOptions { extra_roots, ..HttpOptions::default() }).is_err());
}

/// Resolves every name to this machine.
struct Here;

impl Resolve for Here {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        Box::pin(async { Ok(Box::new(addresses.into_iter()) as Addrs) })
    }
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_refused_unless_configured() {
    let options = HttpOptions {
        trusted: vec!["https://mcp.example.com/".parse().unwrap()],
        resolver: Some(Arc::new(Here)),
        ..HttpOptions::default()
    };
    let http = AuthHttpClient::new(options).unwrap();
    let error = http.get(WHAT, &"https://rebound.example:1/".parse().unwrap()).await.unwrap_err();
    assert!(matches!(error, AuthError::Refused { .. }), "{error}");
    let error = http.get(WHAT, &"https://mcp.example.com:1/".parse().unwrap()).await.unwrap_err();
    assert!(error.is_temporary(), "{error}");
}

/// Returns the URL of a proxy that closes every connection, and what it is sent first.
async fn proxy(scheme: &str) -> (Url, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("{scheme}://{}", listener.local_addr().unwrap()).parse().unwrap();
    let sent = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut sent = vec![0; 1024];
        let read = stream.read(&mut sent).await.unwrap();
        sent.truncate(read);
        sent
    });
    (url, sent)
}

#[tokio::test]
async fn each_url_is_reached_through_its_own_proxy_or_directly() {
    let server = TestServer::fixed(Reply::json(200, &json!({}))).await;
    let ((tunnel, to_tunnel), (socks, to_socks)) = (proxy("http").await, proxy("socks5h").await);
    let choice: ProxyChoice = Arc::new(move |url| match url.host_str() {
        Some("as.example.com") => Some(tunnel.clone()),
        Some("idp.example.com") => Some(socks.clone()),
        _ => None,
    });
    let trusted = vec![server.url("/")];
    let options = HttpOptions { proxy: Some(choice), trusted, ..HttpOptions::default() };
    let http = AuthHttpClient::new(options).unwrap();
    http.get(WHAT, &server.url("/")).await.unwrap();
    for url in ["https://as.example.com/x", "https://idp.example.com/x"] {
        let error = http.get(WHAT, &url.parse().unwrap()).await.unwrap_err();
        assert!(error.is_temporary(), "{error}");
    }
    assert!(to_tunnel.await.unwrap().starts_with(b"CONNECT as.example.com:443 "));
    assert_eq!(to_socks.await.unwrap().first(), Some(&5), "the version of SOCKS");
}

#[tokio::test]
async fn a_document_is_read_without_credentials() {
    let server = TestServer::fixed(Reply::json(200, &json!({"a": 1}))).await;
    let response = server.http().get(WHAT, &server.url("/x?secret=1")).await.unwrap();
    assert_eq!(response.object(WHAT).unwrap()["a"], 1);
    let request = &server.requests()[0];
    assert_eq!(request.headers["accept"], "application/json");
    assert!(!request.headers.contains_key("authorization"));
}

#[tokio::test]
async fn what_is_not_a_json_object_is_named_without_quoting_it() {
    let of = |body: &str| Reply { status: 200, headers: Vec::new(), body: body.into() };
    for (reply, cause) in [
        (Reply::html(), "HTML instead of JSON"),
        (of(" <!DOCTYPE html>hunter22"), "HTML instead of JSON"),
        (of("hunter22"), "not JSON"),
        (of("\"hunter22\""), "not a JSON object"),
        (of(""), "an empty body"),
    ] {
        let server = TestServer::fixed(reply).await;
        let response = server.http().get(WHAT, &server.url("/?key=hunter22")).await.unwrap();
        let error = response.object(WHAT).unwrap_err().to_string();
        assert!(error.ends_with(cause) && !error.contains("hunter22"), "{error}");
    }
}

#[tokio::test]
async fn a_large_body_is_refused() {
    let body = vec![b' '; 10 * 1024 * 1024];
    let server = TestServer::fixed(Reply { status: 200, headers: Vec::new(), body }).await;
    let error = server.http().get(WHAT, &server.url("/")).await.unwrap_err();
    assert!(error.to_string().ends_with("larger than 256 KiB"), "{error}");
}

#[tokio::test]
async fn redirects_of_get_are_followed_and_checked() {
    let server = TestServer::start(|base| {
        move |request: &Request| match request.path.as_str() {
            "/once" => Reply::redirect("/document"),
            "/loop" => Reply::redirect("/loop"),
            "/private" => Reply::redirect("https://169.254.169.254/latest"),
            "/clear" => Reply::redirect("http://example.org/"),
            "/nonsense" => Reply::redirect("http://"),
            _ => Reply::json(200, &json!({ "base": base })),
        }
    })
    .await;
    let http = server.http();
    let response = http.get(WHAT, &server.url("/once")).await.unwrap();
    assert_eq!(response.url, server.url("/document"));
    for (path, cause) in [
        ("/loop", "too many redirects"),
        ("/private", "a private address"),
        ("/clear", "not https"),
        ("/nonsense", "an invalid redirect"),
    ] {
        let error = http.get(WHAT, &server.url(path)).await.unwrap_err().to_string();
        assert!(error.ends_with(cause), "{error}");
    }
}

#[tokio::test]
async fn a_redirect_of_post_is_an_error() {
    let server = TestServer::fixed(Reply::redirect("/elsewhere")).await;
    let (http, url) = (server.http(), server.url("/token"));
    let error = http.post_form(WHAT, &url, &[("code", "hunter22")], HeaderMap::new()).await;
    assert!(error.unwrap_err().to_string().contains("redirect"));
    assert_eq!(server.requests().len(), 1);
    assert_eq!(server.requests()[0].body, "code=hunter22");
}

#[tokio::test]
async fn a_server_that_is_down_is_a_temporary_error_without_the_query() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/x?key=hunter22", listener.local_addr().unwrap());
    drop(listener);
    let url: Url = url.parse().unwrap();
    let error = client(&[url.as_str()]).get(WHAT, &url).await.unwrap_err();
    assert!(error.is_temporary() && error.to_string().contains("refused"), "{error}");
    assert!(!error.to_string().contains("hunter22"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: Url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let error = client(&[url.as_str()]).get(WHAT, &url).await.unwrap_err();
    assert!(error.is_temporary(), "{error}");
}

/// Starts a server with a certificate of its own, and returns its URL and the certificate.
async fn with_tls() -> (Url, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let _ = stream.read(&mut [0; 4096]).await;
            let reply = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
            let _ = stream.write_all(reply).await;
            let _ = stream.shutdown().await;
        }
    });
    (url, made.cert.pem().into_bytes())
}

#[tokio::test]
async fn a_private_certificate_needs_its_root_or_no_verification() {
    let (url, pem) = with_tls().await;
    let options = |extra_roots, verify| {
        let trusted = vec![url.clone()];
        HttpOptions { extra_roots, verify, trusted, ..HttpOptions::default() }
    };
    let error = AuthHttpClient::new(options(Vec::new(), true)).unwrap().get(WHAT, &url).await;
    assert!(error.unwrap_err().is_temporary());
    for options in [options(vec![pem.clone()], true), options(Vec::new(), false)] {
        let response = AuthHttpClient::new(options).unwrap().get(WHAT, &url).await.unwrap();
        assert!(response.object(WHAT).unwrap().is_empty());
    }
}

#[test]
fn certificates_of_hosts_that_a_server_names_are_always_verified() {
    let trusted: Url = "https://mcp.example.com/".parse().unwrap();
    let named: Url = "https://as.example.org/".parse().unwrap();
    let options =
        HttpOptions { verify: false, trusted: vec![trusted.clone()], ..HttpOptions::default() };
    let http = AuthHttpClient::new(options).unwrap();
    assert!(http.kind(&named).unwrap().verifies);
    assert!(!http.kind(&trusted).unwrap().verifies);
}
