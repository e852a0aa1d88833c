use super::*;

const STATE: &str = "right-state";

/// A login that waits, its port, and the task that waits for the response.
async fn waiting() -> (u16, JoinHandle<io::Result<Callback>>) {
    let listener = CallbackListener::bind(None).await.unwrap();
    let port = listener.port;
    assert_eq!(listener.redirect_uri(), format!("http://127.0.0.1:{port}/callback"));
    (port, tokio::spawn(listener.wait("notes <1>", STATE, PATH)))
}

async fn send(port: u16, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let _ = stream.write_all(request).await;
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    String::from_utf8(response).unwrap()
}

async fn get(port: u16, target: &str) -> String {
    let request = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    send(port, request.as_bytes()).await
}

#[tokio::test]
async fn the_browser_shows_the_outcome_of_the_login() {
    for (outcome, text) in [
        (
            LoginOutcome::LoggedIn,
            "You are logged in to notes &lt;1&gt;. You can close this window.",
        ),
        (LoginOutcome::Failed, "The login to notes &lt;1&gt; failed."),
    ] {
        let (port, login) = waiting().await;
        let browser =
            tokio::spawn(async move { get(port, "/callback?code=a%20b&state=right-state").await });
        let callback = login.await.unwrap().unwrap();
        assert_eq!(callback.query(), "code=a%20b&state=right-state");
        callback.finish(outcome).await;
        let page = browser.await.unwrap();
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains(text), "{page}");
        for header in [
            "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n",
            "Cache-Control: no-store\r\n",
            "X-Content-Type-Options: nosniff\r\n",
            "Referrer-Policy: no-referrer\r\n",
        ] {
            assert!(page.contains(header), "{page}");
        }
        assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
    }
}

#[tokio::test]
async fn a_dropped_callback_shows_a_failure_and_frees_the_port() {
    let (port, login) = waiting().await;
    let browser = tokio::spawn(async move { get(port, "/callback?state=right-state").await });
    drop(login.await.unwrap().unwrap());
    assert!(browser.await.unwrap().contains("failed"));
    assert!(CallbackListener::bind(Some(port)).await.is_ok());
}

#[tokio::test]
async fn a_second_response_gets_the_same_page_without_effect() {
    let (port, login) = waiting().await;
    let one = tokio::spawn(async move { get(port, "/callback?code=1&state=right-state").await });
    let callback = login.await.unwrap().unwrap();
    let mut two = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!(
        "GET /callback?code=2&state=right-state HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"
    );
    two.write_all(request.as_bytes()).await.unwrap();
    // A third request is answered only after the second has been accepted.
    assert!(get(port, "/other").await.contains("404"));
    assert_eq!(callback.query(), "code=1&state=right-state");
    callback.finish(LoginOutcome::LoggedIn).await;
    let mut page = String::new();
    two.read_to_string(&mut page).await.unwrap();
    assert_eq!(page, one.await.unwrap());
}

#[tokio::test]
async fn requests_that_are_not_the_response_are_rejected_and_ignored() {
    let (port, login) = waiting().await;
    let host = format!("Host: 127.0.0.1:{port}\r\n\r\n");
    for (request, status) in [
        (format!("GET /callback?code=1&state=wrong HTTP/1.1\r\n{host}"), "400"),
        (format!("GET /callback?code=1 HTTP/1.1\r\n{host}"), "400"),
        (format!("GET /callback?state=right-state&state=right-state HTTP/1.1\r\n{host}"), "400"),
        (format!("GET /callback?state=right-state&state=wrong HTTP/1.1\r\n{host}"), "400"),
        (
            format!("POST /callback?state=right-state HTTP/1.1\r\nContent-Length: 4\r\n{host}abcd"),
            "404",
        ),
        (format!("HEAD /callback?state=right-state HTTP/1.1\r\n{host}"), "404"),
        (format!("GET /favicon.ico HTTP/1.1\r\n{host}"), "404"),
        (format!("GET /callback/?state=right-state HTTP/1.1\r\n{host}"), "404"),
        (format!("GET http://127.0.0.1/callback?state=right-state HTTP/1.1\r\n{host}"), "404"),
        ("GET /callback?state=right-state HTTP/1.1\r\n\r\n".to_owned(), "400"),
        (
            "GET /callback?state=right-state HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
            "400",
        ),
        (
            format!(
                "GET /callback?state=right-state HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n"
            ),
            "400",
        ),
        ("GET /callback?state=right-state HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n".to_owned(), "400"),
        (format!("GET /callback?state=right-state HTTP/1.1\r\nHost: a\r\n{host}"), "400"),
        (format!("GET /callback?state=right-state HTTP/2\r\n{host}"), "400"),
        (format!("GET /callback?state=right-state&x= y HTTP/1.1\r\n{host}"), "400"),
        (format!("GET /callback?state=right-state HTTP/1.1\r\nnonsense\r\n{host}"), "400"),
        ("\r\n\r\n".to_owned(), "400"),
        ("\u{1}\u{2}\r\n\r\n".to_owned(), "400"),
        (
            format!(
                "GET /callback?state=right-state HTTP/1.1\r\nX: {}\r\n{host}",
                "a".repeat(20_000)
            ),
            "431",
        ),
    ] {
        let response = send(port, request.as_bytes()).await;
        let expected = format!("HTTP/1.1 {status} ");
        assert!(response.starts_with(&expected), "{request:.80}: {response}");
        assert!(!response.contains("notes") && !response.contains("logged in"), "{response}");
    }
    assert!(send(port, b"GET /callback\xff HTTP/1.1\r\n\r\n").await.contains(" 400 "));
    assert!(!login.is_finished());
    // It still waits for the right one.
    let browser = tokio::spawn(async move { get(port, "/callback?state=right%2Dstate").await });
    login.await.unwrap().unwrap().finish(LoginOutcome::LoggedIn).await;
    assert!(browser.await.unwrap().contains("logged in"));
}

#[tokio::test]
async fn parameters_are_never_repeated_in_a_page() {
    let (port, login) = waiting().await;
    let script = "%3Cscript%3Ealert(1)%3C/script%3E";
    let wrong = get(port, &format!("/callback?error={script}&state={script}")).await;
    let target = format!("/callback?error=<script>alert(1)</script>&d={script}&state=right-state");
    let right = tokio::spawn(async move { get(port, &target).await });
    login.await.unwrap().unwrap().finish(LoginOutcome::Failed).await;
    for page in [wrong, right.await.unwrap()] {
        assert!(page.contains("</html>") && !page.contains("script") && !page.contains("alert"));
    }
}

#[tokio::test]
async fn a_slow_client_times_out() {
    let (port, _login) = waiting().await;
    let mut slow = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    slow.write_all(b"GET /callback?state=right-state HTTP/1.1\r\nHost:").await.unwrap();
    tokio::time::pause();
    let mut page = String::new();
    slow.read_to_string(&mut page).await.unwrap();
    assert!(page.starts_with("HTTP/1.1 408 "), "{page}");
}

#[tokio::test]
async fn idle_and_slow_connections_do_not_delay_the_response() {
    let (port, login) = waiting().await;
    let mut others = Vec::new();
    for number in 0..2 * MAX_CONNECTIONS {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        if number % 2 == 0 {
            stream.write_all(b"GET /callback?state=right-state HTTP/1.1\r\nHost:").await.unwrap();
        }
        others.push(stream);
    }
    let browser = tokio::spawn(async move { get(port, "/callback?state=right-state").await });
    let callback = login.await.unwrap().unwrap();
    // The browser's connection is not ended in their place.
    for _ in 0..2 * MAX_CONNECTIONS {
        others.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    }
    assert!(get(port, "/other").await.contains("404"));
    callback.finish(LoginOutcome::LoggedIn).await;
    assert!(browser.await.unwrap().contains("logged in"));
    // The response did not wait until one of them had timed out.
    for mut stream in others {
        let mut page = Vec::new();
        let _ = stream.read_to_end(&mut page).await;
        assert_eq!(String::from_utf8(page).unwrap(), "");
    }
}

#[tokio::test]
async fn only_the_path_of_the_authorization_server_counts() {
    let listener = CallbackListener::bind(None).await.unwrap();
    let port = listener.port;
    let login = tokio::spawn(listener.wait("notes", STATE, "/callback/0123"));
    for wrong in ["/callback", "/callback/", "/callback/01234", "/callback/0123/"] {
        let page = get(port, &format!("{wrong}?code=1&state=right-state")).await;
        assert!(page.starts_with("HTTP/1.1 404 "), "{wrong}: {page}");
    }
    let browser = tokio::spawn(async move { get(port, "/callback/0123?state=right-state").await });
    login.await.unwrap().unwrap().finish(LoginOutcome::LoggedIn).await;
    assert!(browser.await.unwrap().contains("logged in"));
}

#[tokio::test]
async fn an_idle_connection_does_not_delay_the_end() {
    let (port, login) = waiting().await;
    let mut idle = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let browser = tokio::spawn(async move { get(port, "/callback?state=right-state").await });
    let callback = login.await.unwrap().unwrap();
    let started = std::time::Instant::now();
    callback.finish(LoginOutcome::LoggedIn).await;
    assert!(started.elapsed() < GRACE / 2);
    assert!(browser.await.unwrap().contains("logged in"));
    assert_eq!(idle.read(&mut [0]).await.unwrap_or(0), 0);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_a_request_or_an_error(head: Vec<u8>, text in "GET /callback[?\r\n :a-zHost]*") {
        let _ = query(&head, 80, PATH);
        let _ = query(text.as_bytes(), 80, PATH);
    }
}

#[tokio::test]
async fn a_taken_port_is_an_error_that_names_it() {
    let taken = CallbackListener::bind(None).await.unwrap();
    let error = CallbackListener::bind(Some(taken.port)).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    let text = error.to_string();
    assert!(text.contains(&taken.port.to_string()) && text.contains("in use"), "{text}");
    let port = taken.port;
    drop(taken);
    assert!(CallbackListener::bind(Some(port)).await.is_ok());
}

#[tokio::test]
async fn a_cancelled_wait_frees_the_port() {
    let (port, login) = waiting().await;
    assert!(get(port, "/").await.contains("404"));
    login.abort();
    let _ = login.await;
    while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(CallbackListener::bind(Some(port)).await.is_ok());
}
