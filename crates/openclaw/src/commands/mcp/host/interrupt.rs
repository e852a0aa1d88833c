//! Somebody wants the program to end: Ctrl-C, or a signal that asks for it.

use std::io;

/// Listens from the moment that it is made.
pub(super) struct Interrupts {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 3],
    #[cfg(windows)]
    ctrl_c: tokio::signal::windows::CtrlC,
}

impl Interrupts {
    #[cfg(unix)]
    pub(super) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let signals = [
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ];
        Ok(Self { signals })
    }

    #[cfg(windows)]
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self { ctrl_c: tokio::signal::windows::ctrl_c()? })
    }

    /// Waits for the next one. Safe to cancel.
    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        {
            let [interrupt, terminate, hangup] = &mut self.signals;
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
        }
        #[cfg(windows)]
        self.ctrl_c.recv().await;
    }
}
