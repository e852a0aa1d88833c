//! Which tools a model gets to see (B3, B12).

use std::collections::BTreeSet;
use std::sync::Arc;

use openclaw_models::{Dialect as ModelDialect, ToolOffer};
use openclaw_tools::schema::Dialect;
use openclaw_tools::{Tool, ToolSource};

use crate::search::{SEARCH_TOOL, ToolSearch, index};

/// What a model is offered in a round.
#[derive(Debug)]
pub(crate) struct Offers {
    pub(crate) tools: Vec<Arc<ToolOffer>>,
    /// What else there is, if it must be searched for.
    pub(crate) index: Option<String>,
    /// The tool that searches, if there is need for one.
    pub(crate) search: Option<Arc<ToolSearch>>,
}

impl Offers {
    /// Nothing, for a model that cannot use tools.
    pub(crate) fn none() -> Self {
        Self { tools: Vec::new(), index: None, search: None }
    }

    /// All tools, or, above a threshold, those that were found before and a way to find the others.
    /// `threshold` 0: always all. Tools that a provider refused are left out.
    pub(crate) fn of(
        source: &dyn ToolSource,
        dialect: ModelDialect,
        threshold: usize,
        found: &BTreeSet<String>,
        refused: &BTreeSet<String>,
    ) -> Self {
        let all = source.tools();
        let dialect = dialect_of(dialect);
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

    /// The tool that a model means: the search, if it was offered, or one of the source.
    pub(crate) fn find(&self, source: &dyn ToolSource, name: &str) -> Option<Arc<dyn Tool>> {
        match &self.search {
            Some(search) if name == SEARCH_TOOL => Some(Arc::clone(search) as Arc<dyn Tool>),
            _ => source.find(name),
        }
    }
}

/// One that this model cannot take is left out; others are not touched by it.
fn offer(tool: &dyn Tool, dialect: Dialect) -> Option<Arc<ToolOffer>> {
    let spec = tool.spec();
    let schema = tool
        .schema_for(dialect)
        .inspect_err(|reason| tracing::warn!(tool = %spec.name, %reason, "a tool is not offered"))
        .ok()?;
    let (name, description) = (spec.name.to_string(), spec.description.clone());
    Some(Arc::new(ToolOffer { name, description, schema }))
}

fn dialect_of(dialect: ModelDialect) -> Dialect {
    match dialect {
        ModelDialect::Anthropic => Dialect::Anthropic,
        ModelDialect::OpenAi => Dialect::OpenAi,
        ModelDialect::Gemini => Dialect::Gemini,
        ModelDialect::Plain => Dialect::Plain,
    }
}
