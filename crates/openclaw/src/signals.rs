//! Somebody wants something of this process: Ctrl-C, or a signal.

use std::io;

/// What somebody wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Ctrl-C: what is under way is to end.
    Interrupt,
    /// The program is to end.
    End,
    /// The terminal is gone; of a gateway: the configuration is to be read again.
    HangUp,
}

/// Listens from the moment that it is made.
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

    /// Waits for the next one. Safe to cancel.
    pub(crate) async fn next(&mut self) -> Wish {
        #[cfg(unix)]
        {
            let [interrupt, terminate, hangup] = &mut self.signals;
            tokio::select! {
                _ = interrupt.recv() => Wish::Interrupt,
                _ = terminate.recv() => Wish::End,
                _ = hangup.recv() => Wish::HangUp,
            }
        }
        #[cfg(windows)]
        {
            self.ctrl_c.recv().await;
            Wish::Interrupt
        }
    }
}
