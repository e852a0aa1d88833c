//! Why a server was not reached: the errors of the HTTP client, told apart by their types.

use std::error::Error;
use std::io;

use openclaw_content::{Untrusted, clean_line};

use super::tls;
use crate::wire::call_error::{ReachProblem, Unreachable};

/// A host name that nobody knows.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub(crate) struct NoSuchHost {
    pub(crate) cause: io::Error,
}

/// What went wrong on the way to the server.
pub(super) fn unreachable(error: &reqwest::Error, is_proxied: bool) -> Unreachable {
    let mut problem = None;
    let mut cause = String::new();
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(current) = next {
        // The innermost says most.
        cause = told(current);
        problem = problem.or_else(|| of_link(current));
        next = match current.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            // Otherwise what is wrapped in it would be passed over.
            Some(inner) => Some(inner),
            None => current.source(),
        };
    }
    let problem = problem.unwrap_or(match error {
        _ if error.is_connect() && error.is_timeout() => ReachProblem::ConnectTimedOut,
        _ if error.is_connect() && is_proxied => ReachProblem::Proxy,
        _ if error.is_connect() => ReachProblem::Connect,
        _ => ReachProblem::Broken,
    });
    Unreachable { problem, cause: clean_line(Untrusted::new(&cause), 300) }
}

/// What an error says, without the address that the HTTP client adds: it may hold credentials.
fn told(error: &(dyn Error + 'static)) -> String {
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return tls::words(error);
    }
    let text = error.to_string();
    match error.downcast_ref::<reqwest::Error>().and_then(reqwest::Error::url) {
        Some(url) => text.replace(&format!(" for url ({url})"), "").replace(url.as_str(), "…"),
        None => text,
    }
}

fn of_link(error: &(dyn Error + 'static)) -> Option<ReachProblem> {
    if error.is::<NoSuchHost>() {
        return Some(ReachProblem::Dns);
    }
    error.downcast_ref::<rustls::Error>().map(tls::problem)
}

#[cfg(test)]
mod tests {
    use reqwest::ResponseBuilderExt as _;

    use super::*;

    #[test]
    fn the_address_is_never_told() {
        let url = url::Url::parse("https://u:pass@a.example/mcp?key=sesame").unwrap();
        let response = http::Response::builder().status(500).url(url).body("").unwrap();
        let error = reqwest::Response::from(response).error_for_status().unwrap_err();
        assert!(error.to_string().contains("sesame") && error.source().is_none(), "{error}");
        let told = unreachable(&error, false).to_string();
        assert!(told.contains("500") && !told.contains("a.example"), "{told}");
        assert!(!told.contains("sesame") && !told.contains("pass"), "{told}");
    }
}
