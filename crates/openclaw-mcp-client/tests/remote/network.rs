//! Proxies, and the reuse of connections.

use openclaw_config::ProxySetting;
use openclaw_mcp_client::connection::remote::{Network, RemoteError, RemotePlan};
use openclaw_mcp_client::wire::ReachProblem;
use openclaw_testkit::{Script, TestServer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use url::Url;

use crate::support::{open, plan};

/// A proxy that forwards everything to one port, or rejects it, and reports the request lines.
struct Proxy {
    url: String,
    asked: mpsc::Receiver<String>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    async fn start(to: Option<u16>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let (tell, asked) = mpsc::channel(64);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, to, tell.clone()));
            }
        });
        Self { url, asked, _tasks: tasks }
    }
}

async fn serve(mut stream: TcpStream, to: Option<u16>, tell: mpsc::Sender<String>) {
    let mut head = vec![0; 4096];
    let Ok(read) = stream.read(&mut head).await else { return };
    let text = String::from_utf8_lossy(&head[..read]).into_owned();
    let _ = tell.send(text.lines().next().unwrap_or_default().to_owned()).await;
    let Some(port) = to else {
        let refusal = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let _ = stream.write_all(refusal).await;
        return;
    };
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    // The server expects only the path.
    let forwarded = text.replacen("http://mcp.invalid", "", 1);
    if server.write_all(forwarded.as_bytes()).await.is_ok() {
        let _ = copy_bidirectional(&mut stream, &mut server).await;
    }
}

async fn problem(plan: RemotePlan) -> ReachProblem {
    let error = open(plan).await.unwrap_err();
    let RemoteError::Unreachable(unreachable) = error else { panic!("{error:?}") };
    unreachable.problem
}

#[tokio::test]
async fn a_configured_proxy_is_used_for_every_connection() {
    let server = TestServer::http(&Script::new());
    let mut proxy = Proxy::start(Some(server.port())).await;
    let mut plan = plan("http://mcp.invalid/mcp");
    plan.config.proxy = ProxySetting::Url(Url::parse(&proxy.url).unwrap().into());
    // From the second request of a connection on, the server gets absolute URLs, and accepts them.
    let _ = open(plan).await;
    assert_eq!(proxy.asked.recv().await.unwrap(), "POST http://mcp.invalid/mcp HTTP/1.1");
}

#[tokio::test]
async fn the_proxy_of_the_environment_is_used_except_for_no_proxy_hosts() {
    let mut proxy = Proxy::start(None).await;
    let mut by_environment = plan("https://mcp.invalid/mcp");
    by_environment.network = Network { https_proxy: Some(proxy.url.clone()), ..Network::default() };
    let mut excepted = by_environment.clone();
    assert_eq!(problem(by_environment.clone()).await, ReachProblem::Proxy);
    assert_eq!(proxy.asked.recv().await.unwrap(), "CONNECT mcp.invalid:443 HTTP/1.1");

    excepted.network.no_proxy = Some("mcp.invalid".to_owned());
    assert_eq!(problem(excepted).await, ReachProblem::Dns);
    by_environment.config.proxy = ProxySetting::Direct;
    assert_eq!(problem(by_environment).await, ReachProblem::Dns);
    assert!(proxy.asked.try_recv().is_err(), "the proxy was not used again");
}

#[tokio::test]
async fn an_unreachable_proxy_is_reported_as_the_problem() {
    // Held, so that no other process listens on the port.
    let held = TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let gone = format!("http://127.0.0.1:{}", held.local_addr().unwrap().port());
    let mut plan = plan("https://mcp.invalid/mcp");
    plan.config.proxy = ProxySetting::Url(Url::parse(&gone).unwrap().into());
    assert_eq!(problem(plan).await, ReachProblem::Proxy);
}

#[tokio::test]
async fn an_unknown_proxy_host_is_reported_and_not_the_server() {
    let proxy = "http://me:sesame@nope.invalid:3128";
    let mut configured = plan("https://mcp.invalid/mcp");
    configured.config.proxy = ProxySetting::Url(Url::parse(proxy).unwrap().into());
    let mut by_environment = plan("https://mcp.invalid/mcp");
    by_environment.network = Network { https_proxy: Some(proxy.to_owned()), ..Network::default() };
    for plan in [configured, by_environment] {
        let error = open(plan).await.unwrap_err();
        let (said, hint) = (error.to_string(), error.hint().unwrap());
        assert!(said.contains("proxy: `nope.invalid` cannot be resolved"), "{said}");
        assert!(!said.contains("sesame"), "{said}");
        assert!(hint.contains("`proxy`") && !hint.contains("`url`"), "{hint}");
    }
}

/// A SOCKS5 proxy without authentication that connects everything to one port (RFC 1928), and
/// reports the requested host.
async fn socks(mut stream: TcpStream, port: u16, tell: mpsc::Sender<String>) -> Option<()> {
    let mut greeting = [0; 2];
    stream.read_exact(&mut greeting).await.ok()?;
    let mut methods = vec![0; usize::from(greeting[1])];
    stream.read_exact(&mut methods).await.ok()?;
    stream.write_all(&[5, 0]).await.ok()?;
    let mut request = [0; 5];
    stream.read_exact(&mut request).await.ok()?;
    let [5, 1, 0, 3, length] = request else { return None };
    let mut host = vec![0; usize::from(length) + 2];
    stream.read_exact(&mut host).await.ok()?;
    host.truncate(host.len() - 2);
    tell.send(String::from_utf8(host).ok()?).await.ok()?;
    let mut server = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    stream.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 0]).await.ok()?;
    copy_bidirectional(&mut stream, &mut server).await.ok().map(drop)
}

#[tokio::test]
async fn a_socks_proxy_resolves_the_host_and_carries_the_connection() {
    let server = TestServer::http(&Script::new());
    let port = server.port();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("socks5h://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let (tell, mut asked) = mpsc::channel(64);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let tell = tell.clone();
            connections.spawn(async move { socks(stream, port, tell).await });
        }
    });
    let mut plan = plan("http://mcp.invalid/mcp");
    plan.config.proxy = ProxySetting::Url(Url::parse(&proxy).unwrap().into());
    let opened = open(plan).await.unwrap();
    assert_eq!(asked.recv().await.unwrap(), "mcp.invalid");
    assert!(!opened.rmcp.list_all_tools().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_connection_is_reused_and_one_that_was_closed_is_replaced() {
    let server = TestServer::http(&Script::new());
    let behind = server.port();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://127.0.0.1:{}/mcp", listener.local_addr().unwrap().port());
    let (connected, mut connections) = mpsc::channel(64);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut tunnels = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let tunnel = tunnels.spawn(async move {
                let mut server = TcpStream::connect(("127.0.0.1", behind)).await?;
                copy_bidirectional(&mut stream, &mut server).await
            });
            let _ = connected.send(tunnel).await;
        }
    });
    let opened = open(plan(&url)).await.unwrap();
    let first = connections.recv().await.unwrap();
    for _ in 0..5 {
        assert!(!opened.rmcp.list_all_tools().await.unwrap().is_empty());
    }
    assert!(connections.try_recv().is_err(), "one connection is enough");
    first.abort();
    while !first.is_finished() {
        tokio::task::yield_now().await;
    }
    assert!(!opened.rmcp.list_all_tools().await.unwrap().is_empty());
    assert!(connections.try_recv().is_ok());
}
