//! How front ends open connections to the gateway.

use std::fs::File;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::node::Node;
use crate::surface::Surface;

/// Opens connections to the gateway, for front ends that need several.
pub trait Connect: Send + Sync {
    /// Opens a connection. It closes on drop.
    ///
    /// # Errors
    /// Why there is no gateway, for the user.
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn Surface>, String>>;

    /// Connects as a node, to publish tools at a gateway without `sessions.setExtraTools`.
    ///
    /// # Errors
    /// Why that is not possible, for the user.
    fn node(&self) -> BoxFuture<'_, Result<PublishingNode, String>> {
        Box::pin(async { Err("the gateway does not accept tools from clients".to_owned()) })
    }
}

/// A node that publishes tools.
#[derive(Debug)]
pub struct PublishingNode {
    /// The connection.
    pub node: Node,
    /// What the user must do before the gateway accepts the tools, if anything.
    pub waits_for: Option<String>,
    /// Keeps other processes from using the same device.
    pub lock: File,
}
