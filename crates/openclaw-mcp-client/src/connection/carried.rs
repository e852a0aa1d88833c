//! What a request carries besides its own parameters: its `_meta`, and input that the server has
//! requested.

use std::borrow::Cow;

use openclaw_tools::Relay;

use super::Connection;
use super::logging::LEVEL_KEY;
use crate::wire::CallError;

/// What a request carries besides its own parameters.
pub(crate) struct Carried<'a> {
    /// The members of its `_meta`, without braces.
    pub(crate) meta: Cow<'a, str>,
    /// Further members of its parameters, without braces.
    pub(super) more: &'a str,
    /// Whether a request for input is its result: both the client and the server know that
    /// (2026-07-28).
    pub(super) relays_input: bool,
}

impl Connection {
    /// Returns what a request carries.
    ///
    /// # Errors
    /// If the client of a relay sends input, and the server cannot have requested it: without the
    /// input, the request would be made once more.
    pub(crate) fn carried<'a>(
        &'a self,
        relay: Option<Relay<'a>>,
    ) -> Result<Carried<'a>, CallError> {
        let Some(relay) = relay else {
            let meta = Cow::Borrowed(self.own_meta());
            return Ok(Carried { meta, more: "", relays_input: false });
        };
        match relay.meta.filter(|_| self.meta.is_some()) {
            Some(meta) => {
                Ok(Carried { meta: Cow::Borrowed(meta), more: relay.more, relays_input: true })
            }
            None if relay.more.is_empty() => {
                let meta = self.meta_with(relay.extra, relay.log_level);
                Ok(Carried { meta, more: "", relays_input: false })
            }
            None => Err(CallError::UnaskedInput),
        }
    }

    /// Our `_meta`, with members of a client and the level of the log messages that it wants, unless
    /// one is configured.
    pub fn meta_with<'a>(&'a self, extra: &'a str, log_level: Option<&str>) -> Cow<'a, str> {
        let own = self.own_meta();
        let is_configured = self.client.log_level().is_some();
        let takes_level = self.meta.is_some() && self.about.offers.logging && !is_configured;
        let level = log_level.filter(|_| takes_level);
        let level = level.map(|level| format!("\"{LEVEL_KEY}\":\"{level}\""));
        match (own, extra, level.as_deref()) {
            (meta, "", None) | ("", meta, None) => Cow::Borrowed(meta),
            (own, extra, level) => {
                let parts = [own, extra, level.unwrap_or_default()];
                let parts = parts.into_iter().filter(|part| !part.is_empty());
                Cow::Owned(parts.collect::<Vec<_>>().join(","))
            }
        }
    }

    /// The members of our `_meta`; none before 2026-07-28.
    pub(super) fn own_meta(&self) -> &str {
        self.meta.as_ref().map_or("", |meta| &meta.members)
    }
}
