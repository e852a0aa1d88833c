//! A validator that is compiled at first use: a catalogue has thousands of tools, of which few are
//! ever called.

use std::sync::{Arc, OnceLock};

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::plain::Plain;
use super::{Unusable, Validator};

/// A schema, with its validator once compiled.
#[derive(Debug)]
pub struct LazyValidator {
    schema: Arc<Map<String, Value>>,
    /// Fast path: decides most calls, for most schemas.
    plain: OnceLock<Option<Plain>>,
    validator: OnceLock<Result<Validator, Unusable>>,
    compile: fn(&Map<String, Value>) -> Result<Validator, Unusable>,
}

impl LazyValidator {
    /// Stores the schema of a tool's arguments without compiling it.
    pub fn new(schema: Arc<Map<String, Value>>) -> Self {
        Self::with(schema, Validator::compile_for_arguments)
    }

    /// Like [`new`](Self::new), for the schema of a tool's results.
    pub fn for_results(schema: Arc<Map<String, Value>>) -> Self {
        Self::with(schema, Validator::compile)
    }

    fn with(
        schema: Arc<Map<String, Value>>,
        compile: fn(&Map<String, Value>) -> Result<Validator, Unusable>,
    ) -> Self {
        Self { schema, plain: OnceLock::new(), validator: OnceLock::new(), compile }
    }

    /// Returns the schema.
    pub fn schema(&self) -> &Arc<Map<String, Value>> {
        &self.schema
    }

    /// Returns whether the fast path finds the schema usable and the arguments valid. If not, the
    /// validator must decide.
    pub fn plainly_fits(&self, arguments: &RawValue) -> bool {
        self.plain().is_some_and(|plain| plain.fits(arguments))
    }

    /// Checks cheaply whether the schema is usable.
    ///
    /// # Errors
    /// See [`Validator::look_at`].
    pub fn look_at(&self) -> Result<(), Unusable> {
        // Not cached: of the tools that are checked, few are called.
        match Plain::of(&self.schema) {
            Some(_) => Ok(()),
            None => Validator::look_at(&self.schema),
        }
    }

    fn plain(&self) -> Option<&Plain> {
        self.plain.get_or_init(|| Plain::of(&self.schema)).as_ref()
    }

    /// Returns the validator, compiled at the first call.
    ///
    /// # Errors
    /// If the schema is unusable.
    pub fn get(&self) -> Result<&Validator, &Unusable> {
        self.validator.get_or_init(|| (self.compile)(&self.schema)).as_ref()
    }
}
