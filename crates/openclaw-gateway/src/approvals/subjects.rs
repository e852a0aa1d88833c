//! The subjects of pending approvals: an approval for later calls also answers the pending ones that
//! it covers.

use std::collections::BTreeMap;

use openclaw_tools::{GrantRule, ToolSpec};
use parking_lot::Mutex;

/// The subject of each pending approval.
#[derive(Debug, Default)]
pub(super) struct ApprovalSubjects(Mutex<BTreeMap<String, ApprovalSubject>>);

/// A call of an agent's tool, with the description it had when the user was asked: a tool with
/// another description is a different one.
#[derive(Debug, Clone)]
pub(super) struct ApprovalSubject {
    pub(super) agent: String,
    pub(super) session: Option<String>,
    pub(super) tool: ToolSpec,
    /// The approvals for later calls that cover this call, as offered.
    pub(super) covered_by: Vec<GrantRule>,
}

impl ApprovalSubject {
    /// Returns which of its choices is the same approval as that choice of another one.
    fn choice(&self, other: &Self, choice: usize) -> Option<usize> {
        let grant = other.covered_by.get(choice)?;
        // An approval of a host is valid in one session.
        let is_same_place = !matches!(grant, GrantRule::Host(_)) || self.session == other.session;
        if self.agent != other.agent || self.tool != other.tool || !is_same_place {
            return None;
        }
        self.covered_by.iter().position(|it| it == grant)
    }
}

impl ApprovalSubjects {
    pub(super) fn open(&self, id: &str, subject: ApprovalSubject) {
        self.0.lock().insert(id.to_owned(), subject);
    }

    pub(super) fn close(&self, id: &str) {
        self.0.lock().remove(id);
    }

    /// The other requests that an approval for later calls also answers, each with its number among
    /// their choices.
    pub(super) fn others(&self, id: &str, choice: usize) -> Vec<(String, usize)> {
        let open = self.0.lock();
        let Some(subject) = open.get(id) else { return Vec::new() };
        let others = open.iter().filter(|(other, _)| *other != id);
        let covered = others
            .filter_map(|(other, about)| Some((other.clone(), about.choice(subject, choice)?)));
        covered.collect()
    }
}
