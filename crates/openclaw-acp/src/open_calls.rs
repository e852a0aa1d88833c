//! The calls of the running turn, and their ids for the client.

use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::schema::{ToolCallContent, ToolCallId};
use serde_json::Value;

/// A call of the running turn.
#[derive(Debug, Clone)]
pub(crate) struct OpenCall {
    /// Its id for the client: unique in the session.
    pub(crate) id: ToolCallId,
    /// Its id in the turn, chosen by the model.
    own: String,
    pub(crate) name: String,
    pub(crate) args: Value,
    /// Whether its approval was requested.
    is_asked: bool,
    /// What it changes in files.
    pub(crate) changes: Vec<ToolCallContent>,
    /// Whether its content is shown already: a terminal, or the changes of a file.
    pub(crate) is_shown: bool,
    /// Its result, if the tool belongs to this session. Events have the beginning of its text only.
    pub(crate) result: Option<Vec<ToolCallContent>>,
}

impl OpenCall {
    pub(crate) fn new(id: ToolCallId, own: &str, name: &str, args: Value) -> Self {
        Self {
            id,
            own: own.to_owned(),
            name: name.to_owned(),
            args,
            is_asked: false,
            changes: Vec::new(),
            is_shown: false,
            result: None,
        }
    }
}

/// The calls of the running turn.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls(Mutex<TurnCalls>);

#[derive(Debug, Default)]
struct TurnCalls {
    /// The number of turns so far.
    turns: u64,
    calls: Vec<OpenCall>,
}

impl TurnCalls {
    /// Finds the first call with this name and these arguments of which more is true.
    fn find(
        &mut self,
        name: &str,
        args: &Value,
        is_wanted: impl Fn(&OpenCall) -> bool,
    ) -> Option<&mut OpenCall> {
        let mut calls = self.calls.iter_mut();
        calls.find(|call| call.name == name && is_wanted(call) && call.args == *args)
    }
}

impl OpenCalls {
    fn lock(&self) -> MutexGuard<'_, TurnCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a turn, without calls.
    pub(crate) fn begin_turn(&self) {
        let mut turn = self.lock();
        turn.turns += 1;
        turn.calls.clear();
    }

    /// Returns the id for the client of a call, whose id the model chose: it may use the same one in
    /// every turn.
    pub(crate) fn id_of(&self, own: &str) -> ToolCallId {
        ToolCallId::new(format!("{}-{own}", self.lock().turns))
    }

    /// Adds a call.
    pub(crate) fn add(&self, call: OpenCall) {
        self.lock().calls.push(call);
    }

    /// Returns the call with this id of the model.
    pub(crate) fn find(&self, own: &str) -> Option<OpenCall> {
        self.lock().calls.iter().rev().find(|call| call.own == own).cloned()
    }

    /// Removes the call with this id of the model.
    pub(crate) fn remove(&self, own: &str) -> Option<OpenCall> {
        let found = self.find(own);
        self.lock().calls.retain(|call| call.own != own);
        found
    }

    /// Removes all calls.
    pub(crate) fn take(&self) -> Vec<OpenCall> {
        std::mem::take(&mut self.lock().calls)
    }

    /// Keeps the changes that are shown of a call.
    pub(crate) fn set_changes(&self, id: &ToolCallId, changes: &[ToolCallContent]) {
        if let Some(call) = self.lock().calls.iter_mut().find(|call| call.id == *id) {
            call.changes = changes.to_vec();
        }
    }

    /// Returns the call that an approval is about, once.
    pub(crate) fn ask_about(&self, name: &str, args: &Value) -> Option<ToolCallId> {
        let mut turn = self.lock();
        let call = turn.find(name, args, |call| !call.is_asked)?;
        call.is_asked = true;
        Some(call.id.clone())
    }

    /// Returns the call that a terminal belongs to, once: it is its content.
    pub(crate) fn show_terminal(&self, name: &str, args: &Value) -> Option<ToolCallId> {
        let mut turn = self.lock();
        let call = turn.find(name, args, |call| !call.is_shown)?;
        call.is_shown = true;
        Some(call.id.clone())
    }

    /// Records the result of a call of a lent tool.
    pub(crate) fn record_result(&self, name: &str, args: &Value, content: Vec<ToolCallContent>) {
        if content.is_empty() {
            return;
        }
        if let Some(call) = self.lock().find(name, args, |call| call.result.is_none()) {
            call.result = Some(content);
        }
    }
}
