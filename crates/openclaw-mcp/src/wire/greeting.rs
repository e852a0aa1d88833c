//! What a server has said already to what `rmcp` is going to ask.

use crate::wire::json::Json;

/// An answer that `rmcp` gets when it asks, so that the server is greeted once.
#[derive(Debug)]
pub(crate) struct Greeting {
    /// `initialize` or `server/discover`.
    pub(crate) method: &'static str,
    /// The server's result.
    pub(crate) result: Json,
}
