//! Questions to the user: those that are open, and permission requests.

use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::schema::{
    PermissionOption, RequestPermissionOutcome, RequestPermissionRequest,
    SelectedPermissionOutcome, ToolCallUpdate,
};
use tokio_util::sync::CancellationToken;

use crate::client::SessionClient;

/// Questions that the gateway waits for, by id, to be withdrawn when they are answered elsewhere.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions(Mutex<Vec<(String, CancellationToken)>>);

impl OpenQuestions {
    fn lock(&self) -> MutexGuard<'_, Vec<(String, CancellationToken)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a question. Returns what is cancelled when it is withdrawn.
    pub(crate) fn open(&self, id: &str) -> CancellationToken {
        let withdrawn = CancellationToken::new();
        self.lock().push((id.to_owned(), withdrawn.clone()));
        withdrawn
    }

    /// Removes a question that is answered or has expired. If it is still asked, it is withdrawn.
    pub(crate) fn close(&self, id: &str) {
        self.lock().retain(|(open, withdrawn)| {
            if open == id {
                withdrawn.cancel();
            }
            open != id
        });
    }
}

/// The user's answer to a permission request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PermissionAnswer {
    /// The id of the chosen option.
    Chosen(String),
    /// The turn was cancelled.
    Cancelled,
    /// The client could not ask, or is gone.
    NotAsked,
    /// The question was withdrawn.
    Withdrawn,
}

/// Lets the user choose an option.
pub(crate) async fn choose(
    client: &SessionClient,
    call: ToolCallUpdate,
    options: Vec<PermissionOption>,
    withdrawn: &CancellationToken,
) -> PermissionAnswer {
    // The client must know the call that it is asked about.
    client.updates.flushed().await;
    let request = RequestPermissionRequest::new(client.session.clone(), call, options);
    let sent = client.send_request(request);
    let cancellation = sent.cancellation_handle();
    tokio::select! {
        answer = sent.block_task() => match answer.map(|answer| answer.outcome) {
            Ok(RequestPermissionOutcome::Selected(SelectedPermissionOutcome {
                option_id, ..
            })) => PermissionAnswer::Chosen(option_id.0.to_string()),
            Ok(_) => PermissionAnswer::Cancelled,
            Err(error) => {
                client.note(&format!("The editor could not ask for permission: {}", error.message));
                PermissionAnswer::NotAsked
            }
        },
        () = withdrawn.cancelled() => {
            // The client may still show it; its answer is ignored.
            let _ = cancellation.cancel();
            PermissionAnswer::Withdrawn
        }
    }
}
