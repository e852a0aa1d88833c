//! The handle to all series, and the bounds on their number.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use openclaw_secrets::Redactor;

use crate::calls::CallSeries;
use crate::counter::{Counter, Counters};
use crate::labels::ApprovalAnswer;
use crate::limits::{AGENTS, MODELS, OTHER, SERVERS, TOOLS, TOOLS_PER_SERVER};
use crate::models::ModelSeries;
use crate::names::label;
use crate::server::ServerSeries;
use crate::turns::TurnSeries;

/// The source of tools of MCP servers: their series are removed with the server.
pub(crate) const MCP: &str = "mcp";

/// The numbers of a gateway. Clones share them.
///
/// ```
/// use openclaw_metrics::{Metrics, labels::CallOutcome};
///
/// let metrics = Metrics::off();
/// assert!(metrics.calls("native", "", "exec").is_none());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Metrics(Option<Arc<Registry>>);

/// All series.
#[derive(Debug)]
pub(crate) struct Registry {
    redactor: Redactor,
    /// Whether calls are counted, and the numbers shown.
    is_on: AtomicBool,
    calls: Mutex<CallTable>,
    servers: Mutex<BTreeMap<Box<str>, Weak<ServerSeries>>>,
    turns: Mutex<BTreeMap<Box<str>, Arc<TurnSeries>>>,
    models: Mutex<BTreeMap<Box<str>, Arc<ModelSeries>>>,
    pub(crate) approvals_requested: Counter,
    pub(crate) approvals_answered: Counters<ApprovalAnswer>,
    pub(crate) events_lost: Counter,
}

/// The series of a server's tools, by name.
type ToolTable = BTreeMap<Box<str>, Arc<CallSeries>>;

/// The series of tools by source, server and tool.
#[derive(Debug, Default)]
struct CallTable {
    sources: BTreeMap<&'static str, BTreeMap<Box<str>, ToolTable>>,
}

impl CallTable {
    fn count(&self) -> usize {
        self.sources.values().flat_map(BTreeMap::values).map(BTreeMap::len).sum()
    }

    fn find(&self, source: &str, server: &str, tool: &str) -> Option<&Arc<CallSeries>> {
        self.sources.get(source)?.get(server)?.get(tool)
    }

    /// Returns the series of a tool; beyond a bound, the one of its server's other tools.
    fn get(&mut self, source: &'static str, server: &str, tool: Box<str>) -> Arc<CallSeries> {
        if let Some(known) = self.find(source, server, &tool) {
            return Arc::clone(known);
        }
        let total = self.count();
        let servers = self.sources.entry(source).or_default();
        let is_one_too_many = servers.len() >= SERVERS && !servers.contains_key(server);
        let server = if is_one_too_many { OTHER } else { server };
        let tools = servers.entry(server.into()).or_default();
        let is_full = tools.len() >= TOOLS_PER_SERVER || total >= TOOLS;
        let tool = if is_full { OTHER.into() } else { tool };
        let series = || Arc::new(CallSeries::new(source, server, tool.clone()));
        Arc::clone(tools.entry(tool.clone()).or_insert_with(series))
    }
}

impl Metrics {
    /// Counts nothing.
    pub fn off() -> Self {
        Self(None)
    }

    /// Counts. Secrets that `redactor` knows are removed from names.
    pub fn on(redactor: Redactor) -> Self {
        Self(Some(Arc::new(Registry {
            redactor,
            is_on: AtomicBool::new(true),
            calls: Mutex::default(),
            servers: Mutex::default(),
            turns: Mutex::default(),
            models: Mutex::default(),
            approvals_requested: Counter::default(),
            approvals_answered: Counters::default(),
            events_lost: Counter::default(),
        })))
    }

    /// Whether calls are counted, and the numbers shown.
    pub fn is_on(&self) -> bool {
        self.shown().is_some()
    }

    /// Starts or stops counting calls and showing the numbers, unless they are [off](Self::off) for
    /// good. What is rare, or not a count, is kept up to date meanwhile: bytes, turns, states.
    pub fn switch(&self, on: bool) {
        if let Some(registry) = self.registry() {
            registry.is_on.store(on, Ordering::Relaxed);
        }
    }

    pub(crate) fn registry(&self) -> Option<&Registry> {
        self.0.as_deref()
    }

    /// All series, if they are shown.
    pub(crate) fn shown(&self) -> Option<&Registry> {
        self.registry().filter(|registry| registry.is_on.load(Ordering::Relaxed))
    }

    /// Returns the series of a tool; `None` if nothing is ever counted. Callers keep it where they
    /// can.
    pub fn calls(&self, source: &'static str, server: &str, tool: &str) -> Option<Arc<CallSeries>> {
        let registry = self.registry()?;
        let mut calls = lock(&registry.calls);
        // Most labels are the name itself: nothing is allocated.
        if let Some(known) = calls.find(source, server, tool) {
            return Some(Arc::clone(known));
        }
        let server = label(server, &registry.redactor);
        Some(calls.get(source, &server, label(tool, &registry.redactor)))
    }

    /// Returns the series of a server, which exist as long as they are used.
    pub fn server(&self, name: &str) -> Option<Arc<ServerSeries>> {
        let registry = self.registry()?;
        let mut servers = lock(&registry.servers);
        servers.retain(|_, series| series.strong_count() > 0);
        let mut name = label(name, &registry.redactor);
        if servers.len() >= SERVERS && !servers.contains_key(&name) {
            name = OTHER.into();
        }
        if let Some(known) = servers.get(&name).and_then(Weak::upgrade) {
            return Some(known);
        }
        let series = Arc::new(ServerSeries::new(name.clone()));
        servers.insert(name, Arc::downgrade(&series));
        Some(series)
    }

    /// Returns the series of an agent.
    pub fn turns(&self, agent: &str) -> Option<Arc<TurnSeries>> {
        let registry = self.registry()?;
        Some(named(&registry.turns, label(agent, &registry.redactor), AGENTS, TurnSeries::new))
    }

    /// Returns the series of a model.
    pub fn model(&self, name: &str) -> Option<Arc<ModelSeries>> {
        let registry = self.registry()?;
        Some(named(&registry.models, label(name, &registry.redactor), MODELS, ModelSeries::new))
    }

    /// Counts a request for approval.
    pub fn approval_requested(&self) {
        if let Some(registry) = self.registry() {
            registry.approvals_requested.increment();
        }
    }

    /// Counts the answer to a request for approval.
    pub fn approval_answered(&self, answer: ApprovalAnswer) {
        if let Some(registry) = self.registry() {
            registry.approvals_answered.of(answer).increment();
        }
    }

    /// Counts events that a slow client has lost.
    pub fn events_lost(&self, events: u64) {
        if let Some(registry) = self.registry() {
            registry.events_lost.add(events);
        }
    }
}

impl Registry {
    /// Returns the series of all tools, sorted. Those of removed servers are dropped.
    pub(crate) fn all_calls(&self) -> Vec<Arc<CallSeries>> {
        let servers = self.all_servers();
        let is_running = |name: &str| servers.iter().any(|server| &*server.name == name);
        let is_counted_together = servers.len() >= SERVERS;
        let mut calls = lock(&self.calls);
        if let Some(of_mcp) = calls.sources.get_mut(MCP) {
            of_mcp.retain(|name, _| name.is_empty() || is_counted_together || is_running(name));
        }
        let tools = calls.sources.values().flat_map(BTreeMap::values);
        tools.flat_map(BTreeMap::values).map(Arc::clone).collect()
    }

    /// Returns the series of all servers, sorted.
    pub(crate) fn all_servers(&self) -> Vec<Arc<ServerSeries>> {
        lock(&self.servers).values().filter_map(Weak::upgrade).collect()
    }

    /// Returns the series of all agents, sorted.
    pub(crate) fn all_turns(&self) -> Vec<Arc<TurnSeries>> {
        lock(&self.turns).values().map(Arc::clone).collect()
    }

    /// Returns the series of all models, sorted.
    pub(crate) fn all_models(&self) -> Vec<Arc<ModelSeries>> {
        lock(&self.models).values().map(Arc::clone).collect()
    }
}

fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the series of a name, or [`OTHER`] beyond the bound.
fn named<T>(
    table: &Mutex<BTreeMap<Box<str>, Arc<T>>>,
    name: Box<str>,
    bound: usize,
    new: impl FnOnce(Box<str>) -> T,
) -> Arc<T> {
    let mut table = lock(table);
    let is_full = table.len() >= bound && !table.contains_key(&name);
    let name = if is_full { OTHER.into() } else { name };
    Arc::clone(table.entry(name.clone()).or_insert_with(|| Arc::new(new(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics() -> Metrics {
        Metrics::on(Redactor::new())
    }

    #[test]
    fn a_tool_has_one_series() {
        let metrics = metrics();
        let [first, again] = [(); 2].map(|()| metrics.calls("native", "", "exec").unwrap());
        assert!(Arc::ptr_eq(&first, &again));
        assert!(!Arc::ptr_eq(&first, &metrics.calls("native", "", "read").unwrap()));
    }

    #[test]
    fn tools_beyond_the_bounds_are_counted_together() {
        let metrics = metrics();
        let _servers: Vec<_> =
            (0..10).map(|server| metrics.server(&format!("s{server}")).unwrap()).collect();
        for server in 0..10 {
            for tool in 0..10_000 {
                let series = metrics.calls("mcp", &format!("s{server}"), &format!("t{tool}"));
                series.unwrap().entered();
            }
        }
        let all = metrics.registry().unwrap().all_calls();
        // One more for each server, for its other tools.
        assert!(all.len() <= TOOLS + 10, "{}", all.len());
        let of_first = all.iter().filter(|series| &*series.server == "s0").count();
        assert_eq!(of_first, TOOLS_PER_SERVER + 1);
        assert_eq!(all.iter().map(|series| series.in_flight()).sum::<u64>(), 100_000);
    }

    #[test]
    fn numbers_that_are_switched_off_are_not_shown_and_their_series_stay() {
        let metrics = metrics();
        metrics.switch(false);
        let series = metrics.calls("native", "", "exec").unwrap();
        assert!(!metrics.is_on() && metrics.sample().is_none());
        metrics.switch(true);
        assert!(metrics.is_on() && metrics.sample().is_some());
        assert!(Arc::ptr_eq(&series, &metrics.calls("native", "", "exec").unwrap()));
        let off = Metrics::off();
        off.switch(true);
        assert!(!off.is_on());
    }

    #[test]
    fn names_that_become_the_same_label_share_a_series() {
        let metrics = metrics();
        let long = "x".repeat(200);
        let [a, b] =
            ["a", "b"].map(|end| metrics.calls("client", "", &format!("{long}{end}")).unwrap());
        assert!(Arc::ptr_eq(&a, &b));
    }

    #[test]
    fn the_series_of_a_removed_server_are_dropped() {
        let metrics = metrics();
        let server = metrics.server("x").unwrap();
        assert!(Arc::ptr_eq(&server, &metrics.server("x").unwrap()));
        metrics.calls("mcp", "x", "echo").unwrap();
        metrics.calls("native", "", "exec").unwrap();
        let registry = metrics.registry().unwrap();
        assert_eq!((registry.all_servers().len(), registry.all_calls().len()), (1, 2));
        drop(server);
        assert_eq!((registry.all_servers().len(), registry.all_calls().len()), (0, 1));
    }

    #[test]
    fn servers_models_and_agents_are_bounded() {
        let metrics = metrics();
        let servers: Vec<_> =
            (0..1_000).map(|number| metrics.server(&number.to_string()).unwrap()).collect();
        for number in 0..1_000 {
            metrics.model(&number.to_string()).unwrap();
            metrics.turns(&number.to_string()).unwrap();
        }
        let registry = metrics.registry().unwrap();
        assert_eq!(registry.all_servers().len(), SERVERS + 1);
        assert_eq!(registry.all_models().len(), MODELS + 1);
        assert_eq!(registry.all_turns().len(), AGENTS + 1);
        drop(servers);
    }
}
