//! Signals to this process, and Ctrl-C.
//!
//! They are received on a thread of their own, which also enforces that they take effect: a program
//! that is too busy or too stuck to handle them is ended.

use std::io;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::error::CommandError;

/// How many signals may wait to be handled. A further one adds nothing.
const PENDING: usize = 8;
/// How long a signal may wait until the program handles it.
const HANDLED_WITHIN: Duration = Duration::from_secs(5);
/// How long the program may take to end, in addition to the time that running work is given:
/// servers have a second after their stdin was closed, and five after SIGTERM.
const ENDED_WITHIN: Duration = Duration::from_secs(15);
/// How long a regular exit may take before the process is killed.
const EXIT: Duration = Duration::from_secs(1);

/// What a signal requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalAction {
    /// SIGINT or Ctrl-C: cancel the current operation.
    Interrupt,
    /// SIGTERM; on Windows Ctrl-Break, a closed window, and for a service the end of the system: exit.
    End,
    /// SIGHUP: the terminal was closed; a gateway reloads its configuration. Not on Windows.
    HangUp,
}

/// Received signals. Handlers are installed on construction.
pub(crate) struct Signals {
    received: mpsc::Receiver<SignalAction>,
}

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// If the operating system refuses, or the thread cannot be started.
    pub(crate) fn listen() -> io::Result<Self> {
        let (sender, received) = mpsc::channel(PENDING);
        let (installed, is_installed) = std::sync::mpsc::sync_channel(1);
        // It runs as long as the process: signals have to take effect until the very end.
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let _ = match runtime {
                Ok(runtime) => runtime.block_on(enforce(sender, installed)),
                Err(error) => installed.send(Err(error)),
            };
        })?;
        is_installed.recv().map_err(io::Error::other)??;
        Ok(Self { received })
    }

    /// Waits for the next signal. Cancel-safe.
    pub(crate) async fn next(&mut self) -> SignalAction {
        match self.received.recv().await {
            Some(action) => action,
            // The thread never ends.
            None => std::future::pending().await,
        }
    }

    /// Waits for work, which the next signal interrupts by dropping it.
    ///
    /// # Errors
    /// [`CommandError::Interrupted`] after a signal, or the error of the work.
    pub(crate) async fn interrupt<T>(
        &mut self,
        work: impl Future<Output = Result<T, CommandError>>,
    ) -> Result<T, CommandError> {
        tokio::select! {
            done = work => done,
            _ = self.next() => Err(CommandError::Interrupted),
        }
    }
}

/// Reports whether the handlers are installed.
type Installed = std::sync::mpsc::SyncSender<io::Result<()>>;
type Stopped = std::sync::mpsc::SendError<io::Result<()>>;

/// Passes signals on, and ends the process if they are not handled.
async fn enforce(sender: mpsc::Sender<SignalAction>, installed: Installed) -> Result<(), Stopped> {
    let mut handlers = match Handlers::install() {
        Ok(handlers) => handlers,
        Err(error) => return installed.send(Err(error)),
    };
    installed.send(Ok(()))?;
    let mut due = None;
    loop {
        tokio::select! {
            action = handlers.next() => {
                // Full: earlier ones are not handled either.
                let _ = sender.try_send(action);
                if action != SignalAction::HangUp {
                    due.get_or_insert(Instant::now() + HANDLED_WITHIN);
                }
            }
            () = expired(due) => {
                if sender.is_closed() || sender.capacity() < PENDING {
                    end();
                }
                due = None;
            }
        }
    }
}

async fn expired(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Ends the process, even if it hangs, soon after running work had `grace` to finish.
pub(crate) fn end_after(grace: Duration) {
    let watch = move || {
        std::thread::sleep(grace + ENDED_WITHIN);
        end();
    };
    if let Err(error) = std::thread::Builder::new().name("end".to_owned()).spawn(watch) {
        tracing::warn!(%error, "cannot enforce the shutdown deadline");
    }
}

/// Ends the process. Servers that it leaves are ended by the guard.
fn end() {
    // A regular exit flushes stdout and waits for locks, so it may hang, too.
    let _ = std::thread::Builder::new().spawn(|| std::process::exit(143));
    std::thread::sleep(EXIT);
    #[cfg(unix)]
    let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
    std::process::abort();
}

/// The handlers of the operating system.
struct Handlers {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 3],
    #[cfg(windows)]
    console: ConsoleEvents,
}

/// What Windows reports to a program with a console. A program in a user's session is told that its
/// window was closed; the logoff and the shutdown only a service is told: one without a window is
/// ended by Windows then, without a word. Job objects end what it has started, and SQLite keeps what it has
/// written.
#[cfg(windows)]
struct ConsoleEvents {
    ctrl_c: tokio::signal::windows::CtrlC,
    ctrl_break: tokio::signal::windows::CtrlBreak,
    closed: tokio::signal::windows::CtrlClose,
    logoff: tokio::signal::windows::CtrlLogoff,
    shutdown: tokio::signal::windows::CtrlShutdown,
}

impl Handlers {
    #[cfg(unix)]
    fn install() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let signals = [
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ];
        Ok(Self { signals })
    }

    #[cfg(windows)]
    fn install() -> io::Result<Self> {
        use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_logoff, ctrl_shutdown};
        let console = ConsoleEvents {
            ctrl_c: ctrl_c()?,
            ctrl_break: ctrl_break()?,
            closed: ctrl_close()?,
            logoff: ctrl_logoff()?,
            shutdown: ctrl_shutdown()?,
        };
        Ok(Self { console })
    }

    /// Waits for the next signal. Cancel-safe.
    async fn next(&mut self) -> SignalAction {
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
            let ConsoleEvents { ctrl_c, ctrl_break, closed, logoff, shutdown } = &mut self.console;
            // After the last three, Windows ends the process within some seconds.
            tokio::select! {
                _ = ctrl_c.recv() => SignalAction::Interrupt,
                _ = ctrl_break.recv() => SignalAction::End,
                _ = closed.recv() => SignalAction::End,
                _ = logoff.recv() => SignalAction::End,
                _ = shutdown.recv() => SignalAction::End,
            }
        }
    }
}
