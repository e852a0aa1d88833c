//! Classifies the errors of the HTTP client by their types.

use std::error::Error;
use std::io;

use openclaw_content::{Untrusted, clean_line};

use super::http_client::HttpError;
use super::tls_error;
use crate::wire::call_error::{ReachProblem, Unreachable};

/// A host name that cannot be resolved.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub(crate) struct NoSuchHost {
    pub(crate) cause: io::Error,
}

/// Returns why the server is unreachable.
pub(super) fn unreachable(error: &HttpError, is_proxied: bool) -> Unreachable {
    let mut problem = None;
    let mut cause = String::new();
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(current) = next {
        // The innermost cause is the most specific.
        cause = error_text(current);
        problem = problem.or_else(|| of_link(current));
        next = match current.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            // `source` would skip the wrapped error.
            Some(inner) => Some(inner),
            None => current.source(),
        };
    }
    let problem = problem.unwrap_or(match error {
        HttpError::ConnectTimedOut(_) => ReachProblem::ConnectTimedOut,
        HttpError::Connect(_) if is_proxied => ReachProblem::Proxy,
        HttpError::Connect(_) => ReachProblem::Connect,
        HttpError::Broken(_) => ReachProblem::Broken,
    });
    Unreachable { problem, address: None, cause: clean_line(Untrusted::new(&cause), 300) }
}

fn error_text(error: &(dyn Error + 'static)) -> String {
    error.downcast_ref().map_or_else(|| error.to_string(), tls_error::describe)
}

fn of_link(error: &(dyn Error + 'static)) -> Option<ReachProblem> {
    if error.is::<NoSuchHost>() {
        return Some(ReachProblem::Dns);
    }
    error.downcast_ref::<rustls::Error>().map(tls_error::problem)
}
