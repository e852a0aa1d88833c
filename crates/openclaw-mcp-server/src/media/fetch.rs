//! Files by URL: from the public internet only.

use std::net::IpAddr;
use std::time::Duration;

use openclaw_net::address::{AllowPrivate, is_public};
use openclaw_net::client::{ClientOptions, guarded, is_not_public};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use url::{Host, Url};

use super::{Loaded, too_large};

/// The timeout of a fetch, including redirects.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 5;
const NOT_PUBLIC: &str = "is not on the public internet, or redirects away from it";

/// Fetches files.
#[derive(Debug, Default)]
pub(crate) struct Fetcher {
    /// Hosts and networks that may be reached although they are not public.
    allow_private: AllowPrivate,
    /// Created at the first fetch: loading the system's certificates is slow.
    client: OnceCell<Client>,
}

impl Fetcher {
    /// Fetches a file.
    ///
    /// # Errors
    /// Why it cannot be attached.
    pub(super) async fn fetch(&self, uri: &str, max_bytes: usize) -> Result<Loaded, String> {
        if uri.trim().is_empty() {
            return Err("`uri` is empty".to_owned());
        }
        let url = Url::parse(uri).map_err(|_| "`uri` is not a valid URI".to_owned())?;
        let shown = shown(&url);
        let fetched = timeout(TIMEOUT, Box::pin(self.follow(url, max_bytes))).await;
        let late = || Err(format!("timed out after {} s", TIMEOUT.as_secs()));
        fetched.unwrap_or_else(|_| late()).map_err(|why| format!("`{shown}` {why}"))
    }

    async fn follow(&self, mut url: Url, max_bytes: usize) -> Result<Loaded, String> {
        for _ in 0..=MAX_REDIRECTS {
            let response = self.get(&url).await?;
            let target = response.headers().get(LOCATION);
            let Some(target) = target.filter(|_| response.status().is_redirection()) else {
                return read(url, response, max_bytes).await;
            };
            let target = target.to_str().ok().and_then(|target| url.join(target).ok());
            url = target.ok_or("redirects to an invalid URL")?;
        }
        Err("redirects too often".to_owned())
    }

    async fn get(&self, url: &Url) -> Result<Response, String> {
        self.check(url)?;
        let options =
            ClientOptions { allow_private: self.allow_private.clone(), ..ClientOptions::default() };
        let client = self.client.get_or_try_init(|| guarded(&options)).await;
        let client = client.map_err(|error| error.to_string())?;
        let request = client.get(url.clone()).header(ACCEPT_ENCODING, "identity");
        request.send().await.map_err(|error| match is_not_public(&error) {
            true => NOT_PUBLIC.to_owned(),
            false => "cannot be fetched: the connection failed".to_owned(),
        })
    }

    /// Checks the URL itself. What a name resolves to is checked by the client's resolver.
    fn check(&self, url: &Url) -> Result<(), String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!(
                "has the scheme `{}:`; only `https:`, `http:` and `data:` are allowed (for a file, use \
                 `path`)",
                url.scheme()
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("has a user name or password".to_owned());
        }
        let address: IpAddr = match url.host() {
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
            Some(Host::Domain(_)) => return Ok(()),
            None => return Err("has no host".to_owned()),
        };
        let is_fine = is_public(address) || self.allow_private.address(address);
        if is_fine { Ok(()) } else { Err(NOT_PUBLIC.to_owned()) }
    }
}

/// A URL for messages: without what may be a credential.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // It fails only for a URL that has none.
    let _ = (url.set_username(""), url.set_password(None));
    if url.query().is_some() {
        url.set_query(Some("…"));
    }
    url.set_fragment(None);
    let shown = url.as_str().replace("%E2%80%A6", "…");
    shown.chars().filter(|c| !c.is_control()).take(200).collect()
}

async fn read(url: Url, mut response: Response, max_bytes: usize) -> Result<Loaded, String> {
    let status = response.status();
    if !status.is_success() {
        return Err(format!("cannot be fetched: HTTP {}", status.as_u16()));
    }
    if response.headers().contains_key(CONTENT_ENCODING) {
        // A small body could expand to a huge one.
        return Err("cannot be fetched: the response is compressed".to_owned());
    }
    let declared = response.headers().get(CONTENT_TYPE);
    let declared = declared.and_then(|it| it.to_str().ok()).map(ToOwned::to_owned);
    let mut bytes = Vec::new();
    loop {
        let chunk = response.chunk().await;
        let chunk = chunk.map_err(|_| "cannot be fetched: the connection was lost".to_owned())?;
        let Some(chunk) = chunk else { break };
        if bytes.len() + chunk.len() > max_bytes {
            return Err(format!("is {}", too_large()));
        }
        bytes.extend_from_slice(&chunk);
    }
    let name = url.path_segments().and_then(|mut it| it.next_back()).unwrap_or_default();
    let name = if name.is_empty() { "page" } else { name }.to_owned();
    Ok(Loaded { bytes, name, declared, url: Some(url.into()) })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers each connection with one of these responses, in order.
    async fn server(responses: Vec<String>) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            for response in responses {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 4_096];
                let _ = stream.read(&mut request).await.unwrap();
                stream.write_all(response.as_bytes()).await.unwrap();
            }
        });
        port
    }

    fn allowing() -> Fetcher {
        let allow_private = AllowPrivate::new(["127.0.0.1"]).unwrap();
        Fetcher { allow_private, client: OnceCell::new() }
    }

    fn response(status: &str, body: &str) -> String {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
    }

    #[tokio::test]
    async fn only_web_addresses_on_the_public_internet_are_fetched() {
        for (uri, why) in [
            ("file:///etc/passwd", "scheme `file:`"),
            ("ftp://example.org/", "scheme `ftp:`"),
            ("http://127.0.0.1:1/", "not on the public internet"),
            ("http://[::1]/", "not on the public internet"),
            ("http://169.254.169.254/latest", "not on the public internet"),
            ("http://10.0.0.1/", "not on the public internet"),
            ("http://0x7f.1/", "not on the public internet"),
            ("http://localhost:1/", "not on the public internet"),
            ("https://user:pw@example.org/", "user name"),
            ("nonsense", "not a valid URI"),
        ] {
            let error = Fetcher::default().fetch(uri, 1_000).await.err().unwrap();
            assert!(error.contains(why), "{uri}: {error}");
        }
        let secret = "http://user:hunter2@10.0.0.1/a?token=hunter2#hunter2";
        let error = Fetcher::default().fetch(secret, 1_000).await.err().unwrap();
        assert!(error.contains("http://10.0.0.1/a?…") && !error.contains("hunter2"), "{error}");
    }

    #[tokio::test]
    async fn a_file_is_fetched_within_its_bounds() {
        let redirect = "HTTP/1.1 302 Found\r\nLocation: /b.txt\r\nContent-Length: 0\r\n\
                        Connection: close\r\n\r\n";
        let port = server(vec![
            redirect.to_owned(),
            response("200 OK", "hello"),
            response("200 OK", "too long"),
            response("404 Not Found", ""),
            "HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
                .to_owned(),
        ])
        .await;
        let fetcher = allowing();
        let uri = format!("http://127.0.0.1:{port}/a");
        let file = fetcher.fetch(&uri, 5).await.unwrap();
        assert_eq!((&file.bytes[..], file.name.as_str()), (&b"hello"[..], "b.txt"));
        for why in ["too large", "HTTP 404", "not on the public internet"] {
            let error = fetcher.fetch(&uri, 5).await.err().unwrap();
            assert!(error.contains(why), "{error}");
        }
    }
}
