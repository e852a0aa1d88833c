//! Floods of unauthenticated connections: a caller can authenticate in the middle of one.

use std::net::SocketAddr;

use openclaw_gateway::socket::SocketLimits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::abuse::{raise_file_limit, upgrade};
use crate::support::{LONG, Raw, TOKEN, connect_params, start};

/// Waits until the server has accepted all earlier connections: it accepts them in order.
async fn all_accepted(address: SocketAddr) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&upgrade(address.port())).await.unwrap();
    let mut first = [0; 12];
    timeout(LONG, stream.read_exact(&mut first)).await.unwrap().unwrap();
    assert_eq!(&first, b"HTTP/1.1 101");
}

#[tokio::test]
async fn a_caller_can_authenticate_while_many_others_connect() {
    raise_file_limit();
    for (count, are_silent) in [(300, false), (1_500, true)] {
        let (server, _service) = start(SocketLimits::default()).await;
        let address = server.address;
        let mut caller = Raw::dial(address).await;
        let mut strangers = Vec::new();
        for _ in 0..count {
            let mut stream = TcpStream::connect(address).await.unwrap();
            if !are_silent {
                stream.write_all(&upgrade(address.port())).await.unwrap();
            }
            strangers.push(stream);
        }
        all_accepted(address).await;
        caller.ask("connect", connect_params(TOKEN)).await.unwrap();
    }
}
