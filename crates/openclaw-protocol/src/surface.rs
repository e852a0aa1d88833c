//! [`Surface`]: one caller's end of the gateway.

use std::fmt;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::ErrorShape;
use crate::event::EventReceiver;
use crate::method::Method;

/// One caller's end of the gateway: in this process, or at the other end of a socket.
///
/// Dropping the future of a request gives up waiting for its answer.
pub trait Surface: Send + Sync + fmt::Debug {
    /// Asks, and waits for the answer.
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Option<Box<RawValue>>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorShape>>;

    /// Listens from now on. Events come in order; what a slow listener missed is told.
    fn events(&self) -> EventReceiver;
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The gateway says no.
    #[error(transparent)]
    Refused(#[from] ErrorShape),
    /// What was to be sent cannot be written as JSON.
    #[error("the parameters of `{method}` cannot be sent: {error}")]
    Params {
        /// What was asked.
        method: Method,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// The answer is not of the right shape.
    #[error("the answer to `{method}` cannot be read: {error}")]
    Answer {
        /// What was asked.
        method: Method,
        /// What is wrong.
        error: serde_json::Error,
    },
}

impl AskError {
    /// Whether the gateway has no such method.
    #[must_use]
    pub fn is_unknown_method(&self) -> bool {
        matches!(self, Self::Refused(error) if error.is_unknown_method())
    }
}

/// Asks with typed parameters, for a typed answer.
///
/// # Errors
/// If the gateway refuses, or one of the two cannot be written or read.
pub async fn ask<P: Serialize + Sync, R: DeserializeOwned>(
    surface: &dyn Surface,
    method: Method,
    params: &P,
) -> Result<R, AskError> {
    let params = to_raw_value(params).map_err(|error| AskError::Params { method, error })?;
    let answer = surface.request(method.name(), Some(params)).await?;
    serde_json::from_str(answer.get()).map_err(|error| AskError::Answer { method, error })
}

/// Reads the parameters of a request; those left out count as `{}`.
///
/// # Errors
/// What to answer if they are not what the method takes.
pub fn params_of<P: DeserializeOwned>(
    method: &str,
    params: Option<&RawValue>,
) -> Result<P, ErrorShape> {
    serde_json::from_str(params.map_or("{}", RawValue::get))
        .map_err(|error| ErrorShape::invalid(format!("invalid {method} params: {error}")))
}
