//! The running turn of a session.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How a turn ended.
#[derive(Debug)]
pub(crate) enum TurnEnd {
    /// With this reason of the gateway.
    Stopped(Option<String>),
    /// The turn failed.
    Failed(String),
    /// The connection to the gateway was lost.
    GatewayGone,
}

impl TurnEnd {
    pub(crate) fn cancelled() -> Self {
        Self::Stopped(Some("cancelled".to_owned()))
    }
}

/// The running turn, if there is one.
#[derive(Debug, Default)]
pub(crate) struct CurrentTurn(Mutex<Option<PromptTurn>>);

#[derive(Debug)]
struct PromptTurn {
    run: String,
    cancelled: CancellationToken,
    over: CancellationToken,
    end: Option<oneshot::Sender<TurnEnd>>,
    shown: ShownText,
}

/// What the client was shown of a turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShownText {
    /// The text since the last call.
    pub(crate) text: String,
    /// Whether the prompt is a command, whose answer is laid out in columns.
    pub(crate) is_command: bool,
    /// Whether events were lost, perhaps the end.
    pub(crate) has_gap: bool,
}

/// What the owner of a turn waits for.
pub(crate) struct TurnSignals {
    pub(crate) end: oneshot::Receiver<TurnEnd>,
    /// Cancelled by the client.
    pub(crate) cancelled: CancellationToken,
}

impl CurrentTurn {
    fn lock(&self) -> MutexGuard<'_, Option<PromptTurn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a turn. Returns `None` if one is running.
    pub(crate) fn begin(&self, run: String, is_command: bool) -> Option<TurnSignals> {
        let (sender, end) = oneshot::channel();
        let cancelled = CancellationToken::new();
        let mut turn = self.lock();
        if turn.is_some() {
            return None;
        }
        *turn = Some(PromptTurn {
            run,
            cancelled: cancelled.clone(),
            over: CancellationToken::new(),
            end: Some(sender),
            shown: ShownText { is_command, ..ShownText::default() },
        });
        Some(TurnSignals { end, cancelled })
    }

    /// Forgets the turn: its calls of lent tools end.
    pub(crate) fn forget(&self) {
        if let Some(turn) = self.lock().take() {
            turn.over.cancel();
        }
    }

    /// Reports how the turn ended: its calls of lent tools end.
    pub(crate) fn finish(&self, end: TurnEnd) {
        if let Some(turn) = &mut *self.lock() {
            turn.over.cancel();
            if let Some(sender) = turn.end.take() {
                let _ = sender.send(end);
            }
        }
    }

    /// Cancels the turn.
    pub(crate) fn cancel(&self) {
        if let Some(turn) = &*self.lock() {
            turn.cancelled.cancel();
        }
    }

    /// Returns the id of its run.
    pub(crate) fn run(&self) -> Option<String> {
        self.lock().as_ref().map(|turn| turn.run.clone())
    }

    pub(crate) fn is_running(&self, run: &str) -> bool {
        self.lock().as_ref().is_some_and(|turn| turn.run == run)
    }

    /// Returns whether this run is the turn, and was cancelled by the client.
    pub(crate) fn is_cancelled(&self, run: &str) -> bool {
        self.lock().as_ref().is_some_and(|turn| turn.run == run && turn.cancelled.is_cancelled())
    }

    /// Cancelled when the turn is over.
    pub(crate) fn over(&self) -> Option<CancellationToken> {
        self.lock().as_ref().map(|turn| turn.over.clone())
    }

    /// Changes what is known about the text that was shown.
    pub(crate) fn with_shown<R>(&self, change: impl FnOnce(&mut ShownText) -> R) -> Option<R> {
        self.lock().as_mut().map(|turn| change(&mut turn.shown))
    }
}
