//! Language models behind one trait: [`Model`].
//!
//! [`open`] creates one by name, such as `anthropic/claude-sonnet-4-5`. Each wire format is a module
//! of `provider/`. The model named `offline` needs no network: it understands simple commands, and
//! calls tools like any other.
//!
//! ```
//! use openclaw_models::{ModelError, open};
//!
//! let http = openclaw_models::http_client()?;
//! let model = open("offline", &[], http.clone())?;
//! assert_eq!(model.name(), "offline");
//! assert!(matches!(open("anthropic/claude-sonnet-4-5", &[], http), Err(ModelError::NeedsKey { .. })));
//! # Ok::<(), ModelError>(())
//! ```

mod client;
mod completion;
mod error;
mod message;
mod model;
mod offline;
mod ollama;
mod open;
mod provider;
mod retry;
#[cfg(feature = "testing")]
pub mod scripted;
mod settings;
mod window;

pub use client::http_client;
pub use completion::{Completion, read_text};
pub use error::ModelError;
pub use message::{Message, Part, Reasoning, Thought, ToolResult, ToolUse};
pub use model::{Chunk, Model, ModelRequest, StopReason, ToolOffer, Usage};
pub use offline::Offline;
pub use ollama::{LocalOllama, find_ollama};
pub use open::open;
pub use retry::Retrying;
pub use settings::{ApiKind, ProviderSettings};
