//! A validator that is compiled when it is first needed: a catalogue has thousands of tools, of which
//! few are ever called.

use std::sync::{Arc, OnceLock};

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::plain::Plain;
use super::{Unusable, Validator};

/// A schema, and its validator once it was needed.
#[derive(Debug)]
pub struct LazyValidator {
    schema: Arc<Map<String, Value>>,
    /// What decides most calls, of most schemas.
    plain: OnceLock<Option<Plain>>,
    validator: OnceLock<Result<Validator, Unusable>>,
}

impl LazyValidator {
    /// Keeps a schema for later.
    pub fn new(schema: Arc<Map<String, Value>>) -> Self {
        Self { schema, plain: OnceLock::new(), validator: OnceLock::new() }
    }

    /// The schema.
    pub fn schema(&self) -> &Arc<Map<String, Value>> {
        &self.schema
    }

    /// Whether the schema can be used and the arguments fit it, as far as that is plain to see. If not,
    /// the validator has to look closer.
    pub fn plainly_fits(&self, arguments: &RawValue) -> bool {
        self.plain().is_some_and(|plain| plain.fits(arguments))
    }

    /// Whether the schema can be used, as far as that shows at little cost.
    ///
    /// # Errors
    /// See [`Validator::look_at`].
    pub fn look_at(&self) -> Result<(), Unusable> {
        // It is not kept: of the tools that are looked at, few are called.
        match Plain::of(&self.schema) {
            Some(_) => Ok(()),
            None => Validator::look_at(&self.schema),
        }
    }

    fn plain(&self) -> Option<&Plain> {
        self.plain.get_or_init(|| Plain::of(&self.schema)).as_ref()
    }

    /// The validator, compiled at the first call.
    ///
    /// # Errors
    /// If the schema cannot be used.
    pub fn get(&self) -> Result<&Validator, &Unusable> {
        self.validator.get_or_init(|| Validator::compile(&self.schema)).as_ref()
    }
}
