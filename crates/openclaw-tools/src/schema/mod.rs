//! Schemas of tool arguments: validating calls (B4), and adapting schemas to model providers (B3).
//!
//! Schemas are untrusted. They cannot cause a fetch, a long computation or a stack overflow: size,
//! depth and validation cost are bounded before a validator is built, and `pattern`s run on an
//! engine without backtracking.

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
pub use provider::{SchemaDialect, provider_schema};
pub use shape::{for_each_subschema_mut, holds_for_each_subschema};
pub use validator::Validator;
pub use violations::{Violations, format_words};

/// Why a schema is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is too large.
    #[error("its schema is larger than {} KB", tidy::MAX_WEIGHT / 1024)]
    TooLarge,
    /// It is nested too deeply.
    #[error("its schema is nested too deeply")]
    TooDeep,
    /// It refers to itself infinitely.
    #[error("its schema is infinitely recursive")]
    Circular,
    /// It is not the schema of an object.
    #[error("its schema does not describe an object")]
    NotAnObject,
    /// It is invalid.
    #[error("its schema is invalid: {0}")]
    Invalid(String),
    /// The provider does not accept the name of a required property.
    #[error("the model provider does not accept the name of a required property: {0}")]
    PropertyName(String),
}
