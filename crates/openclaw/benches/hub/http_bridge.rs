//! What the hub over HTTP is compared with: the least possible bridge from HTTP to a server on stdio. It
//! forwards each body as a line, and returns the next line as the response, without looking at either.

use std::convert::Infallible;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

/// The argument that makes this program the bridge.
pub(crate) const ARGUMENT: &str = "__http_bridge";

struct Server {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    async fn forward(&mut self, body: &[u8]) -> Vec<u8> {
        let mut line = body.to_vec();
        line.push(b'\n');
        self.input.write_all(&line).await.unwrap();
        line.clear();
        // A notification has no response.
        if memchr::memmem::find(body, b"\"id\"").is_some() {
            self.output.read_until(b'\n', &mut line).await.unwrap();
            line.pop();
        }
        line
    }
}

/// Prints its URL, and serves until it is killed.
pub(crate) fn run(program: &str, args: &[String]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let server = Arc::new(Mutex::new(Server { input, output: BufReader::new(output) }));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let mut stdout = std::io::stdout();
        writeln!(stdout, "http://{}/mcp", listener.local_addr().unwrap()).unwrap();
        stdout.flush().unwrap();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let server = Arc::clone(&server);
            let service = service_fn(move |request: Request<Incoming>| {
                let server = Arc::clone(&server);
                async move {
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let reply = server.lock().await.forward(&body).await;
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(reply))))
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
}
