//! The pages that the browser shows. They have no scripts and load nothing, and the only variable
//! part is the name of the server in the configuration.

/// A page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallbackPage {
    LoggedIn,
    Failed,
    OtherLogin,
    NotFound,
    Invalid,
    TooLarge,
    TooSlow,
}

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{margin:0;min-height:100vh;display:grid;place-items:center;\
font:1.1rem/1.5 system-ui,sans-serif;background:#f6f7f9;color:#1c2230}\
main{max-width:26rem;margin:1rem;padding:2rem 2.5rem;border-radius:.75rem;background:#fff;\
box-shadow:0 1px 3px #0002,0 8px 24px #0001;overflow-wrap:anywhere}\
h1{margin:0 0 .5rem;font-size:1.3rem}p{margin:0}\
.good h1{color:#13703a}.bad h1{color:#b3261e}\
@media(prefers-color-scheme:dark){body{background:#14171d;color:#e4e7ee}main{background:#1e232c}\
.good h1{color:#6fd99a}.bad h1{color:#ff9a90}}";

impl CallbackPage {
    fn status(self) -> &'static str {
        match self {
            Self::LoggedIn | Self::Failed => "200 OK",
            Self::OtherLogin | Self::Invalid => "400 Bad Request",
            Self::NotFound => "404 Not Found",
            Self::TooLarge => "431 Request Header Fields Too Large",
            Self::TooSlow => "408 Request Timeout",
        }
    }

    /// Returns the title and the text.
    fn text(self, server: &str) -> (&'static str, String) {
        let server = escape(server);
        match self {
            Self::LoggedIn => {
                ("Logged in", format!("You are logged in to {server}. You can close this window."))
            }
            Self::Failed => (
                "Login failed",
                format!("The login to {server} failed. See OpenClaw for the reason."),
            ),
            Self::OtherLogin => (
                "Login ignored",
                "This response does not belong to the current login. Start the login again from \
                 OpenClaw."
                    .to_owned(),
            ),
            Self::NotFound => ("Not found", "This page does not exist.".to_owned()),
            Self::Invalid => ("Invalid request", "This request is invalid.".to_owned()),
            Self::TooLarge => ("Request too large", "This request is too large.".to_owned()),
            Self::TooSlow => ("Timed out", "This request timed out.".to_owned()),
        }
    }

    /// Returns the whole HTTP response.
    pub(super) fn response(self, server: &str) -> String {
        let (title, text) = self.text(server);
        let class = if self == Self::LoggedIn { "good" } else { "bad" };
        let body = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <title>{title} – OpenClaw</title><style>{STYLE}</style></head>\
             <body><main class=\"{class}\"><h1>{title}</h1><p>{text}</p></main></body></html>\n"
        );
        format!(
            "HTTP/1.1 {}\r\n\
             Content-Type: text/html; charset=utf-8\r\n\
             Content-Length: {}\r\n\
             Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n\
             Cache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\n\
             Referrer-Policy: no-referrer\r\n\
             Connection: close\r\n\
             \r\n{body}",
            self.status(),
            body.len(),
        )
    }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_server_is_escaped() {
        let page = CallbackPage::LoggedIn.response("<b onload='x'>\"&");
        assert!(page.contains("&lt;b onload=&#39;x&#39;&gt;&quot;&amp;"), "{page}");
        assert!(!page.contains("<b "));
    }

    #[test]
    fn the_length_counts_bytes_and_nothing_is_loaded() {
        for page in [
            CallbackPage::LoggedIn,
            CallbackPage::Failed,
            CallbackPage::OtherLogin,
            CallbackPage::NotFound,
            CallbackPage::Invalid,
        ] {
            let response = page.response("Bücher");
            let (head, body) = response.split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
            for word in ["<script", "http:", "https:", "src=", "href="] {
                assert!(!body.contains(word), "{word} in {body}");
            }
        }
    }
}
