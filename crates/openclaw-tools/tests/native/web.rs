//! Fetching pages.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use openclaw_tools::address::AllowPrivate;
use openclaw_tools::native::{NativeSetup, WebSettings};
use openclaw_tools::{
    ApprovalExtent, ApprovalRule, Content, GrantRule, RefusedBy, ToolFailure, ToolOutcome,
};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::Bench;

/// A local web server with a fixed response per path.
struct Site {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Site {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut visitors = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                visitors.spawn(answer(stream));
            }
        });
        Self { address, task }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(mut stream: TcpStream) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => request.push(byte),
            Err(_) => return,
        }
    }
    let request = String::from_utf8(request).unwrap();
    let path = request.split(' ').nth(1).unwrap().to_owned();
    let to = |target: &str| format!("HTTP/1.1 302 Found\r\nLocation: {target}\r\n");
    let of = |kind: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n");
    let (head, body) = match path.as_str() {
        "/page" => (
            of("text/html; charset=utf-8"),
            b"<title>T</title><p>Hello &lt;|im_start|&gt; <a href='/x'>there</a>".to_vec(),
        ),
        "/json" => (of("application/json"), br#"{"a": 1}"#.to_vec()),
        "/latin" => (of("text/plain; charset=ISO-8859-1"), b"caf\xe9".to_vec()),
        "/picture" => (of("text/plain"), b"GIF89a and so on".to_vec()),
        "/binary" => (of("application/zip"), vec![0; 100]),
        "/empty" => (of("text/plain"), Vec::new()),
        "/headers" => (of("text/plain"), request.clone().into_bytes()),
        "/missing" => {
            ("HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n".to_owned(), b"gone".to_vec())
        }
        "/packed" => (format!("{}Content-Encoding: gzip\r\n", of("text/plain")), vec![31, 139, 8]),
        "/once" => (to("/page"), Vec::new()),
        "/loop" => (to("/loop"), Vec::new()),
        "/metadata" => (to("http://169.254.169.254/latest/meta-data"), Vec::new()),
        "/file" => (to("file:///etc/passwd"), Vec::new()),
        "/secure" => (to("https://example.org/"), Vec::new()),
        away if away.starts_with("/away?") => {
            let port = away.trim_start_matches("/away?");
            (to(&format!("http://localhost:{port}/page")), Vec::new())
        }
        page if page.starts_with("/page?") => (of("text/plain"), b"page".to_vec()),
        "/user" => (to(&format!("http://me:pw@{}/page", "127.0.0.1")), Vec::new()),
        "/nonsense" => (to("http://"), Vec::new()),
        "/endless" => {
            let _ = stream.write_all(format!("{}\r\n", of("text/plain")).as_bytes()).await;
            while stream.write_all(&[b'x'; 65_536]).await.is_ok() {}
            return;
        }
        "/silent" => {
            let _ = stream.read_u8().await;
            return;
        }
        _ => return,
    };
    let head = format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&body).await;
}

fn bench(allowed: &[&str]) -> Bench {
    bench_with(allowed, |web| web)
}

fn bench_with(allowed: &[&str], adjust: impl FnOnce(WebSettings) -> WebSettings) -> Bench {
    let allow_private = AllowPrivate::new(allowed.iter().copied()).unwrap();
    Bench::with(|setup| {
        let web = adjust(WebSettings { allow_private, ..setup.web });
        NativeSetup { web, ..setup }
    })
}

async fn fetch(bench: &Bench, url: &str) -> ToolOutcome {
    bench.call("web_fetch", json!({"url": url})).await
}

fn assert_refused(outcome: &ToolOutcome, failure: ToolFailure, words: &str) {
    assert_eq!(outcome.details.failure, Some(failure), "{}", outcome.rendered());
    assert!(outcome.rendered().contains(words), "{}", outcome.rendered());
    assert!(outcome.is_error && !outcome.details.untrusted);
}

#[tokio::test]
async fn a_page_is_made_readable_and_harmless() {
    let (site, bench) = (Site::start().await, bench(&["127.0.0.1"]));
    let outcome = fetch(&bench, &site.url("/once")).await;
    let text = outcome.rendered();
    assert!(text.starts_with("This is content fetched from the web."), "{text}");
    assert!(text.contains(&format!("URL: {}\n---\n", site.url("/page"))), "{text}");
    assert!(text.contains("T\n\nHello [removed token] there (/x)\n<<<END"), "{text}");
    assert!(!outcome.is_error && outcome.details.untrusted);
    assert_eq!(outcome.details.findings.defused(), 1);
}

#[tokio::test]
async fn other_kinds_are_shown_or_described() {
    let (site, bench) = (Site::start().await, bench(&["127.0.0.0/8"]));
    for (path, words) in [
        ("/json", "\n{\"a\": 1}\n"),
        ("/latin", "\ncafé\n"),
        (
            "/binary",
            "neither text nor a supported image: 100 bytes, with the type `application/zip`",
        ),
        ("/empty", "The response is empty."),
    ] {
        let outcome = fetch(&bench, &site.url(path)).await;
        assert!(!outcome.is_error && outcome.rendered().contains(words), "{}", outcome.rendered());
    }
    let outcome = fetch(&bench, &site.url("/picture")).await;
    let Some(Content::Image { mime_type, .. }) = outcome.content.last() else { panic!() };
    assert_eq!(mime_type, "image/gif");
    let outcome = fetch(&bench, &site.url("/missing")).await;
    assert!(outcome.is_error && outcome.rendered().starts_with("The server returned HTTP 404."));
    assert!(outcome.rendered().contains("\ngone\n"));
}

#[tokio::test]
async fn nothing_is_sent_that_says_who_we_are() {
    let (site, bench) = (Site::start().await, bench(&["127.0.0.1"]));
    let text = fetch(&bench, &site.url("/headers")).await.rendered().to_ascii_lowercase();
    assert!(text.contains("accept-encoding: identity"), "{text}");
    for header in ["cookie:", "authorization:", "referer:"] {
        assert!(!text.contains(header), "{text}");
    }
}

#[tokio::test]
async fn this_machine_cannot_be_reached_unless_that_is_configured() {
    let site = Site::start().await;
    let port = site.address.port();
    let closed = bench(&[]);
    for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0x7f.0.0.1"] {
        let plain = fetch(&closed, &format!("http://{host}:{port}/page")).await;
        assert_refused(&plain, ToolFailure::Denied, "only https URLs are allowed");
        let secure = fetch(&closed, &format!("https://{host}:{port}/page")).await;
        assert_refused(&secure, ToolFailure::Denied, "not on the public internet");
    }
    let open = bench(&["localhost"]);
    let outcome = fetch(&open, &format!("http://localhost:{port}/json")).await;
    assert!(!outcome.is_error, "{}", outcome.rendered());
    let outcome = fetch(&open, &site.url("/json")).await;
    assert_refused(&outcome, ToolFailure::Denied, "only https URLs are allowed");
}

/// Resolves every name to these addresses.
#[derive(Debug)]
struct Everywhere(Vec<SocketAddr>);

impl Resolve for Everywhere {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses = self.0.clone();
        Box::pin(async move { Ok(Box::new(addresses.into_iter()) as Addrs) })
    }
}

#[tokio::test]
async fn a_public_name_that_leads_to_a_private_address_is_refused() {
    let url = "https://public.example/";
    for address in ["127.0.0.1:0", "10.0.0.1:0", "[fd00::1]:0", "[::ffff:169.254.169.254]:0"] {
        let found = vec!["93.184.215.14:0".parse().unwrap(), address.parse().unwrap()];
        let resolver: Arc<dyn Resolve> = Arc::new(Everywhere(found));
        let bench = bench_with(&[], |web| WebSettings { resolver: Some(resolver), ..web });
        assert_refused(
            &fetch(&bench, url).await,
            ToolFailure::Denied,
            "not on the public internet",
        );
    }
    // If it is allowed by name, the connection is attempted: the server does not speak TLS.
    let site = Site::start().await;
    let resolver: Arc<dyn Resolve> = Arc::new(Everywhere(vec![site.address]));
    let bench =
        bench_with(&["public.example"], |web| WebSettings { resolver: Some(resolver), ..web });
    let url = format!("https://public.example:{}/", site.address.port());
    assert_refused(
        &fetch(&bench, &url).await,
        ToolFailure::Unavailable,
        "cannot connect to the server",
    );
}

#[tokio::test]
async fn every_redirect_is_checked() {
    let (site, bench) = (Site::start().await, bench(&["127.0.0.1"]));
    for (path, failure, words) in [
        ("/metadata", ToolFailure::Denied, "only https URLs are allowed"),
        ("/file", ToolFailure::Denied, "another URL scheme"),
        ("/secure", ToolFailure::Denied, "another URL scheme"),
        ("/user", ToolFailure::Denied, "a user name or password"),
        ("/loop", ToolFailure::InvalidResponse, "too many redirects"),
        ("/nonsense", ToolFailure::InvalidResponse, "an invalid URL"),
        ("/packed", ToolFailure::InvalidResponse, "is compressed"),
    ] {
        assert_refused(&fetch(&bench, &site.url(path)).await, failure, words);
    }
}

#[tokio::test]
async fn a_body_without_end_is_cut_and_a_silent_server_is_left() {
    let (site, bench) = (Site::start().await, bench(&["127.0.0.1"]));
    let outcome = fetch(&bench, &site.url("/endless")).await;
    assert!(!outcome.is_error && outcome.details.is_cut, "{}", outcome.rendered());
    assert!(outcome.rendered().ends_with("only its first 50000 characters are shown."));
    let asked = json!({"url": site.url("/endless"), "max_chars": 10});
    let outcome = bench.call("web_fetch", asked).await;
    assert!(outcome.rendered().contains("\nxxxxxxxxxx\n<<<END"));
    let timeout = Duration::from_millis(300);
    let hasty = bench_with(&["127.0.0.1"], |web| WebSettings { timeout, ..web });
    let outcome = fetch(&hasty, &site.url("/silent")).await;
    assert_refused(&outcome, ToolFailure::TimedOut, "timed out");
}

#[tokio::test]
async fn an_invalid_url_is_reported() {
    let bench = bench(&[]);
    for (url, failure) in [
        ("example.org", ToolFailure::InvalidArguments),
        ("file:///etc/passwd", ToolFailure::InvalidArguments),
        ("https://", ToolFailure::InvalidArguments),
        ("ftp://example.org/", ToolFailure::Denied),
        ("https://me@example.org/", ToolFailure::Denied),
    ] {
        assert_refused(&fetch(&bench, url).await, failure, "Fetch failed");
    }
}

/// Returns which check refused a fetch without a user.
async fn refused(bench: &Bench, session: &str, url: &str) -> Option<RefusedBy> {
    let outcome = bench.call_in(Some(session), "web_fetch", json!({"url": url}), None).await;
    outcome.details.refused
}

#[tokio::test]
async fn a_host_is_asked_about_once_in_a_session() {
    let (site, other) = (Site::start().await, Site::start().await);
    let bench = bench(&["127.0.0.1"]);
    let ask = Some(RefusedBy::NobodyToAsk);
    let page = site.url("/page?data=secret");
    assert_eq!(refused(&bench, "one", &page).await, ask);
    let asked = || json!({"url": site.url("/json")});
    let once = Some(ApprovalExtent::Once);
    assert!(!bench.call_in(Some("one"), "web_fetch", asked(), once).await.is_error);
    assert_eq!(refused(&bench, "one", &page).await, ask, "the approval was for one call");
    let host = Some(ApprovalExtent::Always(GrantRule::Host(site.address.to_string())));
    assert!(!bench.call_in(Some("one"), "web_fetch", asked(), host).await.is_error);
    assert_eq!(refused(&bench, "one", &page).await, None);
    assert_eq!(refused(&bench, "two", &page).await, ask, "another session");
    assert_eq!(refused(&bench, "one", &other.url("/page")).await, ask, "another host");
    for never in ["https://169.254.169.254/", "ftp://example.org/", "nonsense"] {
        assert_eq!(refused(&bench, "one", never).await, None, "it fails without asking: {never}");
    }
}

#[tokio::test]
async fn hosts_can_be_allowed_and_the_rule_be_changed() {
    let site = Site::start().await;
    let port = site.address.port();
    let url = format!("http://localhost:{port}/page");
    let with = |approval, hosts: &[&str]| {
        let allow_hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        bench_with(&["localhost", "127.0.0.1"], |web| WebSettings { approval, allow_hosts, ..web })
    };
    let ask = Some(RefusedBy::NobodyToAsk);
    for (rule, hosts, expected) in [
        (ApprovalRule::Auto, &["localhost"][..], None),
        (ApprovalRule::Always, &["localhost"], None),
        (ApprovalRule::Auto, &["example.org"], ask),
        (ApprovalRule::Never, &[], None),
        (ApprovalRule::Always, &[], ask),
    ] {
        let bench = with(rule, hosts);
        assert_eq!(refused(&bench, "one", &url).await, expected, "{rule:?} {hosts:?}");
    }
    let bench = with(ApprovalRule::Always, &[]);
    let host = Some(ApprovalExtent::Always(GrantRule::Host(format!("localhost:{port}"))));
    bench.call_in(Some("one"), "web_fetch", json!({"url": url}), host).await;
    assert_eq!(refused(&bench, "one", &url).await, ask, "every call");
}

#[tokio::test]
async fn a_redirect_to_another_host_needs_its_own_approval() {
    let site = Site::start().await;
    let here = site.address.to_string();
    let port = site.address.port();
    let away = json!({"url": site.url(&format!("/away?{port}"))});
    let allowed = ["localhost", "127.0.0.1"];
    let bench_asking = bench(&allowed);
    let host = || Some(ApprovalExtent::Always(GrantRule::Host(here.clone())));
    let outcome = bench_asking.call_in(Some("one"), "web_fetch", away.clone(), host()).await;
    assert_eq!(outcome.details.failure, Some(ToolFailure::Denied));
    assert!(outcome.text().contains(&format!("`localhost:{port}`")), "{}", outcome.text());
    let page = json!({"url": format!("http://localhost:{port}/page")});
    let other = Some(ApprovalExtent::Always(GrantRule::Host(format!("localhost:{port}"))));
    assert!(!bench_asking.call_in(Some("one"), "web_fetch", page, other).await.is_error);
    let outcome = bench_asking.call_in(Some("one"), "web_fetch", away.clone(), None).await;
    assert!(!outcome.is_error, "both hosts are approved: {}", outcome.text());
    let free = bench_with(&allowed, |web| WebSettings { approval: ApprovalRule::Never, ..web });
    assert!(!free.call_in(Some("one"), "web_fetch", away, None).await.is_error);
}
