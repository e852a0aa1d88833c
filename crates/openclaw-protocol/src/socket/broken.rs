//! Why a WebSocket failed.

use std::io;

use openclaw_budget::BudgetSpent;
use tungstenite::error::{CapacityError, Error, ProtocolError};

/// Why a WebSocket can no longer be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The peer closed the connection.
    #[error("closed by the peer: {code} {reason}")]
    Closed {
        /// Close code.
        code: u16,
        /// Close reason.
        reason: String,
    },
    /// The connection was lost.
    #[error("the connection was lost: {0}")]
    Lost(io::Error),
    /// A message exceeds the size limit.
    #[error("message of {size} bytes exceeds the limit of {max} bytes")]
    TooLarge {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        max: usize,
    },
    /// A message is binary.
    #[error("binary messages are not supported")]
    Binary,
    /// A message is not UTF-8.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// The peer violated the WebSocket protocol.
    #[error("WebSocket protocol error: {0}")]
    Protocol(String),
    /// The peer does not read.
    #[error("slow consumer")]
    Slow,
    /// What the peer sends, or does not read, takes too much memory.
    #[error(transparent)]
    Memory(BudgetSpent),
}

impl SocketError {
    /// Returns the close code to send; `None` if the connection is closed already.
    #[must_use]
    pub fn close_code(&self) -> Option<u16> {
        match self {
            Self::Closed { .. } | Self::Lost(_) => None,
            Self::TooLarge { .. } => Some(1009),
            Self::Binary => Some(1003),
            Self::NotUtf8 => Some(1007),
            Self::Protocol(_) => Some(1002),
            Self::Slow => Some(1008),
            Self::Memory(_) => Some(1013),
        }
    }
}

impl From<Error> for SocketError {
    fn from(error: Error) -> Self {
        match error {
            Error::Capacity(CapacityError::MessageTooLong { size, max_size }) => {
                Self::TooLarge { size, max: max_size }
            }
            Error::Utf8(_) => Self::NotUtf8,
            Error::Io(error) => Self::Lost(error),
            Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                Self::Lost(io::ErrorKind::UnexpectedEof.into())
            }
            Error::Protocol(error) => Self::Protocol(error.to_string()),
            other => Self::Protocol(other.to_string()),
        }
    }
}
