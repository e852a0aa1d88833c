//! Why a WebSocket ends.

use std::io;

use tungstenite::error::{CapacityError, Error, ProtocolError};

/// Why nothing more can be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The other side closed it.
    #[error("closed by the other side: {code} {reason}")]
    Closed {
        /// The code that it gave.
        code: u16,
        /// The reason that it gave.
        reason: String,
    },
    /// The connection was lost.
    #[error("the connection was lost: {0}")]
    Lost(io::Error),
    /// The message is larger than allowed.
    #[error("a message of {size} bytes is too large, {max} are allowed")]
    TooLarge {
        /// Its size.
        size: usize,
        /// What is allowed.
        max: usize,
    },
    /// It is not text.
    #[error("only text is spoken here")]
    Binary,
    /// It is not UTF-8.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// It is no WebSocket.
    #[error("the WebSocket protocol was broken: {0}")]
    Protocol(String),
    /// The other side does not read.
    #[error("slow consumer")]
    Slow,
}

impl Broken {
    /// The code with which to close; none if it is closed already.
    #[must_use]
    pub fn close_code(&self) -> Option<u16> {
        match self {
            Self::Closed { .. } | Self::Lost(_) => None,
            Self::TooLarge { .. } => Some(1009),
            Self::Binary => Some(1003),
            Self::NotUtf8 => Some(1007),
            Self::Protocol(_) => Some(1002),
            Self::Slow => Some(1008),
        }
    }
}

impl From<Error> for Broken {
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
            other => Self::Protocol(other.to_string()),
        }
    }
}
