//! Tools are recorded when they are first listed: a later change is then noticed, also of a tool that
//! needs no approval.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, PoisonError};

use tokio::runtime::Handle;

use super::{Approved, Pins, ServerKey, fingerprint, now};
use openclaw_mcp_client::listing::ListedTool;

/// How many tools of a server are kept: a server decides what it lists.
pub(super) const MAX_TOOLS: usize = 2_000;

impl Pins {
    /// Records the listed tools of a server that were never seen before. This is valid immediately: the
    /// server may change them at once. They are saved in the background, with one write. If none is
    /// new, no file is read or written.
    pub(crate) fn see(self: &Arc<Self>, server: &ServerKey, listed: &[Arc<ListedTool>]) {
        let mut known = self.known();
        let is_new = |tool: &&Arc<ListedTool>| known.approved(server, &tool.name).is_none();
        let new: Vec<_> = listed.iter().filter(is_new).take(MAX_TOOLS).cloned().collect();
        if new.is_empty() {
            return;
        }
        let seen = |tool: &Arc<ListedTool>| {
            let fingerprint = fingerprint(tool);
            let seen = Approved { fingerprint, since: now(), always: BTreeSet::new() };
            (tool.name.clone(), seen)
        };
        let seen: Vec<(String, Approved)> = new.iter().map(seen).collect();
        let being_saved = known.being_saved.entry(server.clone()).or_default();
        being_saved.extend(seen.iter().cloned());
        drop(known);
        let pins = Arc::clone(self);
        let server = server.clone();
        let listed = listed.to_vec();
        let save = move || {
            if let Err(error) = pins.save_seen(&server, &listed, &new, &seen) {
                tracing::warn!(server = %server.server, %error, "cannot save the tools seen");
                pins.unsaved.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        };
        match Handle::try_current() {
            Ok(runtime) => drop(self.saving.spawn_blocking_on(save, &runtime)),
            Err(_) => save(),
        }
    }

    /// Saves the tools that were never seen before. If that fails, they are known until this process
    /// exits.
    fn save_seen(
        &self,
        server: &ServerKey,
        listed: &[Arc<ListedTool>],
        new: &[Arc<ListedTool>],
        seen: &[(String, Approved)],
    ) -> io::Result<()> {
        self.change_if(|approvals| {
            let tools = approvals.entry(server.clone()).or_default();
            let before = tools.len();
            make_room(tools, listed, seen.len());
            let kept = tools.len();
            for (name, seen) in seen {
                if tools.len() < MAX_TOOLS {
                    tools.entry(name.clone()).or_insert_with(|| seen.clone());
                }
            }
            kept != before || tools.len() != kept
        })?;
        let mut known = self.known();
        seen.iter().for_each(|(name, seen)| known.is_done_with(server, name, seen));
        let approvals = known.approvals.clone();
        drop(known);
        self.save_definitions(server, new, &approvals);
        Ok(())
    }
}

/// Removes the oldest tools that are neither listed any more nor approved permanently, as far as new
/// ones need their place.
fn make_room(tools: &mut BTreeMap<String, Approved>, listed: &[Arc<ListedTool>], new: usize) {
    let excess = (tools.len() + new).saturating_sub(MAX_TOOLS);
    if excess == 0 {
        return;
    }
    let listed: BTreeSet<&str> = listed.iter().map(|tool| tool.name.as_str()).collect();
    let is_gone = |name: &str, it: &Approved| it.always.is_empty() && !listed.contains(name);
    let gone = tools.iter().filter(|(name, it)| is_gone(name, it));
    let mut gone: Vec<(u64, String)> = gone.map(|(name, it)| (it.since, name.clone())).collect();
    gone.sort_unstable();
    gone.iter().take(excess).for_each(|(_, name)| drop(tools.remove(name)));
}
