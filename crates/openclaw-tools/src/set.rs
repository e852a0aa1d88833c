//! Tools that can be called, and sets of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::approval::{Approval, Standing};
use crate::outcome::ToolOutcome;
use crate::schema::{Dialect, Unusable, provider_schema};
use crate::spec::ToolSpec;

/// A call of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// The arguments: a JSON object.
    pub arguments: &'a RawValue,
    /// Who is behind it.
    pub who: &'a str,
    /// The session that it belongs to.
    pub session: Option<&'a str>,
    /// Whether somebody was asked and agreed.
    pub approval: Option<Approval>,
}

/// A tool as it is now. Should it change meanwhile, what was seen and approved is what is called, or
/// nothing.
pub trait Tool: Send + Sync + fmt::Debug {
    /// What an agent is told about it.
    fn spec(&self) -> &ToolSpec;

    /// The schema of its arguments as a provider of models takes it (B3).
    ///
    /// # Errors
    /// Why it cannot be offered to such a model.
    fn schema_for(&self, dialect: Dialect) -> Result<Arc<Value>, Unusable> {
        provider_schema(&self.spec().input_schema, dialect).map(Arc::new)
    }

    /// Whether somebody must agree before it runs.
    fn standing(&self) -> Standing;

    /// The same for a call with these arguments, where that makes a difference.
    fn standing_for(&self, _arguments: &RawValue) -> Standing {
        self.standing()
    }

    /// Whether a model is shown it even where most tools must be searched for.
    fn is_essential(&self) -> bool {
        false
    }

    /// Calls it. Arguments are checked first; whatever goes wrong is an outcome. Dropping the future
    /// cancels the call.
    fn call<'a>(&'a self, call: ToolCall<'a>) -> BoxFuture<'a, ToolOutcome>;
}

/// Some tools.
pub trait ToolSet: Send + Sync + fmt::Debug {
    /// Those that may be used, as of now, in the order of their names.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// The tool of a name, if it may be used.
    fn find(&self, name: &str) -> Option<Arc<dyn Tool>>;
}

/// No tools.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTools;

impl ToolSet for NoTools {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    fn find(&self, _: &str) -> Option<Arc<dyn Tool>> {
        None
    }
}

/// Several sets as one. Of two tools with one name the one of the earlier set counts.
#[derive(Debug, Clone, Default)]
pub struct Toolbox(Vec<Arc<dyn ToolSet>>);

impl Toolbox {
    /// Puts sets together.
    pub fn new(sets: impl IntoIterator<Item = Arc<dyn ToolSet>>) -> Self {
        Self(sets.into_iter().collect())
    }
}

impl ToolSet for Toolbox {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut all = BTreeMap::new();
        for tool in self.0.iter().flat_map(|set| set.tools()) {
            all.entry(tool.spec().name.clone()).or_insert(tool);
        }
        all.into_values().collect()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.0.iter().find_map(|set| set.find(name))
    }
}
