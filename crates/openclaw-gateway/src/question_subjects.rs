//! Pending approvals by tool: allowing a tool permanently answers all of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use openclaw_tools::ToolSpec;

/// The subject of each pending approval.
#[derive(Debug, Default)]
pub(crate) struct QuestionSubjects(Mutex<BTreeMap<String, Subject>>);

/// A tool of an agent, with the description it had when the question was asked: a tool with another
/// description is a different one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Subject {
    pub(crate) agent: String,
    pub(crate) tool: ToolSpec,
}

impl QuestionSubjects {
    pub(crate) fn open(&self, id: &str, subject: Subject) {
        self.lock().insert(id.to_owned(), subject);
    }

    pub(crate) fn close(&self, id: &str) {
        self.lock().remove(id);
    }

    /// The other questions about the same subject.
    pub(crate) fn others(&self, id: &str) -> Vec<String> {
        let open = self.lock();
        let Some(subject) = open.get(id) else { return Vec::new() };
        let question_subjects =
            open.iter().filter(|(other, about)| *other != id && *about == subject);
        question_subjects.map(|(other, _)| other.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Subject>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
