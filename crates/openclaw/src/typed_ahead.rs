//! Discards input that was typed before a prompt was shown, so that it is not taken for the answer.

/// Discards unread input of the terminal. Does nothing if stdin is not a terminal.
#[cfg(unix)]
pub(crate) fn forget() {
    use std::io::IsTerminal as _;

    use nix::sys::termios::{FlushArg, tcflush};

    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        // If the flush fails, reading the answer will fail, too.
        let _ = tcflush(&stdin, FlushArg::TCIFLUSH);
    }
}

/// Does nothing: the line editor empties its own queue, and there is no other.
#[cfg(not(unix))]
pub(crate) fn forget() {}
