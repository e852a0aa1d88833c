//! What was typed before a question was asked. It is no answer to it.

/// Forgets what waits at the terminal and was read by nobody yet. Where stdin is no terminal, nothing happens.
#[cfg(unix)]
pub(crate) fn forget() {
    use std::io::IsTerminal as _;

    use nix::sys::termios::{FlushArg, tcflush};

    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        // One that cannot be emptied cannot be read either.
        let _ = tcflush(&stdin, FlushArg::TCIFLUSH);
    }
}

/// The editor's own queue is emptied by itself; there is no other here.
#[cfg(not(unix))]
pub(crate) fn forget() {}
