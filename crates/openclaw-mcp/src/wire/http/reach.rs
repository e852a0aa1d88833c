//! Why a server was not reached: the errors of the HTTP client, told apart by their types.

use std::error::Error;
use std::io;

use rustls::CertificateError;

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
    let mut cause = error.to_string();
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(current) = next {
        // The innermost says most.
        cause = current.to_string();
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
    Unreachable { problem, cause }
}

fn of_link(error: &(dyn Error + 'static)) -> Option<ReachProblem> {
    if error.is::<NoSuchHost>() {
        return Some(ReachProblem::Dns);
    }
    Some(match error.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(problem) => match problem {
            CertificateError::UnknownIssuer => ReachProblem::UnknownIssuer,
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => ReachProblem::Expired,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                ReachProblem::WrongName
            }
            _ => ReachProblem::Tls,
        },
        _ => ReachProblem::Tls,
    })
}
