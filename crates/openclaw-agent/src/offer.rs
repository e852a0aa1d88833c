//! Selects the tools a model sees (B3, B12).

use std::collections::BTreeSet;
use std::sync::Arc;

use openclaw_models::ToolOffer;
use openclaw_tools::schema::{SchemaDialect, provider_schema};
use openclaw_tools::search::seen_by_model;
use openclaw_tools::{Tool, ToolSource};

use crate::search::{SEARCH_TOOL, ToolSearch, index};

/// The tools offered to a model in one round.
#[derive(Debug)]
pub(crate) struct OfferedTools {
    pub(crate) tools: Vec<Arc<ToolOffer>>,
    /// Names of the tools that must be searched for, if any.
    pub(crate) index: Option<String>,
    /// The search tool, if needed.
    pub(crate) search: Option<Arc<ToolSearch>>,
}

impl OfferedTools {
    /// No tools, for a model that does not support them.
    pub(crate) fn none() -> Self {
        Self { tools: Vec::new(), index: None, search: None }
    }

    /// All tools, or, above `threshold`, the ones found before and the search tool. A `threshold`
    /// of 0 means all. Tools that a provider rejected are omitted.
    pub(crate) fn of(
        source: &dyn ToolSource,
        dialect: SchemaDialect,
        threshold: usize,
        found: &BTreeSet<String>,
        refused: &BTreeSet<String>,
    ) -> Self {
        let all = source.tools();
        let is_refused = |tool: &Arc<dyn Tool>| refused.contains(tool.spec().name.as_str());
        if threshold == 0 || all.len() <= threshold {
            let offered = all.iter().filter(|tool| !is_refused(tool));
            let tools = offered.filter_map(|tool| offer(&**tool, dialect)).collect();
            return Self { tools, index: None, search: None };
        }
        let (near, far): (Vec<_>, Vec<_>) = all
            .into_iter()
            .filter(|tool| !is_refused(tool))
            .partition(|tool| tool.is_essential() || found.contains(tool.spec().name.as_str()));
        let mut tools: Vec<_> = near.iter().filter_map(|tool| offer(&**tool, dialect)).collect();
        let index = index(&far);
        let search = Arc::new(ToolSearch::new(far));
        tools.extend(offer(&*search, dialect));
        Self { tools, index: Some(index), search: Some(search) }
    }

    /// Finds the tool for a call: the search tool if it was offered, or one of `source`.
    pub(crate) fn find(&self, source: &dyn ToolSource, name: &str) -> Option<Arc<dyn Tool>> {
        match &self.search {
            Some(search) if name == SEARCH_TOOL => Some(Arc::clone(search) as Arc<dyn Tool>),
            _ => source.find(name),
        }
    }
}

/// Returns `None` for a tool this model cannot accept; other tools are not affected.
fn offer(tool: &dyn Tool, dialect: SchemaDialect) -> Option<Arc<ToolOffer>> {
    let spec = tool.spec();
    let (description, schema) = seen_by_model(tool);
    let schema = match tool.is_withheld() {
        true => provider_schema(&schema, dialect).map(Arc::new),
        false => tool.schema_for(dialect),
    };
    let schema = schema
        .inspect_err(|reason| tracing::warn!(tool = %spec.name, %reason, "tool not offered"))
        .ok()?;
    let (name, description) = (spec.name.to_string(), description.to_owned());
    Some(Arc::new(ToolOffer { name, description, schema }))
}
