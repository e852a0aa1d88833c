//! Signals to this process, and Ctrl-C.

use std::io;

/// What a signal requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalAction {
    /// SIGINT or Ctrl-C: cancel the current operation.
    Interrupt,
    /// SIGTERM: exit.
    End,
    /// SIGHUP: the terminal was closed; a gateway reloads its configuration.
    HangUp,
}

/// Signal handlers, installed on construction.
pub(crate) struct Signals {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 3],
    #[cfg(windows)]
    ctrl_c: tokio::signal::windows::CtrlC,
}

impl Signals {
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let signals = [
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ];
        Ok(Self { signals })
    }

    #[cfg(windows)]
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self { ctrl_c: tokio::signal::windows::ctrl_c()? })
    }

    /// Waits for the next signal. Cancel-safe.
    pub(crate) async fn next(&mut self) -> SignalAction {
        #[cfg(unix)]
        {
            let [interrupt, terminate, hangup] = &mut self.signals;
            tokio::select! {
                _ = interrupt.recv() => SignalAction::Interrupt,
                _ = terminate.recv() => SignalAction::End,
                _ = hangup.recv() => SignalAction::HangUp,
            }
        }
        #[cfg(windows)]
        {
            self.ctrl_c.recv().await;
            SignalAction::Interrupt
        }
    }
}
