//! A validator that is compiled when it is first needed: a catalogue has thousands of tools, of which
//! few are ever called.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::{Unusable, Validator};

/// A schema, and its validator once it was needed.
#[derive(Debug)]
pub struct LazyValidator {
    schema: Arc<Map<String, Value>>,
    validator: OnceLock<Result<Validator, Unusable>>,
}

impl LazyValidator {
    /// Keeps a schema for later.
    pub fn new(schema: Arc<Map<String, Value>>) -> Self {
        Self { schema, validator: OnceLock::new() }
    }

    /// The schema.
    pub fn schema(&self) -> &Arc<Map<String, Value>> {
        &self.schema
    }

    /// The validator, compiled at the first call.
    ///
    /// # Errors
    /// If the schema cannot be used.
    pub fn get(&self) -> Result<&Validator, &Unusable> {
        self.validator.get_or_init(|| Validator::compile(&self.schema)).as_ref()
    }
}
