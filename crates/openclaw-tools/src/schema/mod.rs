//! Schemas of tools' arguments: checking calls against them (B4), and making them acceptable to model
//! providers (B3).
//!
//! A schema comes from outside. Nothing it says makes us fetch something, run for long, or run out of
//! stack: its size, its depth and the cost of checking against it are bounded before a validator sees
//! it, and `pattern`s run on an engine without backtracking.

mod cost;
mod gemini;
mod lazy;
mod plain;
mod provider;
mod rebuild;
mod shape;
mod tidy;
mod validator;
mod violations;

pub use lazy::LazyValidator;
pub use provider::{Dialect, provider_schema};
pub use shape::{for_each_subschema_mut, holds_for_each_subschema};
pub use validator::Validator;
pub use violations::Violations;

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It has too much text.
    #[error("its schema is larger than {} KB", tidy::MAX_WEIGHT / 1024)]
    TooLarge,
    /// It is nested too deeply.
    #[error("its schema is nested too deeply")]
    TooDeep,
    /// It refers to itself without an end.
    #[error("its schema is endlessly recursive")]
    Circular,
    /// It is not the schema of an object, as arguments are.
    #[error("its schema does not describe an object")]
    NotAnObject,
    /// Something in it makes no sense.
    #[error("its schema is invalid: {0}")]
    Invalid(String),
    /// The provider does not take the name of a property that is required.
    #[error("the model provider does not accept the name of a required property: {0}")]
    PropertyName(String),
}
