//! Principals whose token may be revoked, and what ends then.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use openclaw_protocol::Principal;
use tokio_util::sync::CancellationToken;

/// The principals with a token that have made requests. Those with a revoked one are removed, so they
/// are not more than there are tokens.
#[derive(Debug, Default)]
pub(super) struct Revocations(Mutex<HashMap<Principal, CancellationToken>>);

impl Revocations {
    /// Returns what is cancelled when the token of a principal is revoked; `None` if it has none.
    pub(super) fn token_for(&self, principal: &Principal) -> Option<CancellationToken> {
        principal.token()?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(all.entry(principal.clone()).or_default().clone())
    }

    /// Cancels what belongs to these principals.
    pub(super) fn revoke(&self, mut is_revoked: impl FnMut(&Principal) -> bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let revoked = all.extract_if(|principal, _| is_revoked(principal));
        revoked.for_each(|(_, ended)| ended.cancel());
    }
}
