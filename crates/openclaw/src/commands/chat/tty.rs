//! The mode of the terminal while no prompt is shown: keys are not echoed into the output, and
//! Ctrl-C does not discard them.

/// The terminal in that mode; dropping it restores the original mode.
pub(super) struct QuietTerminal {
    #[cfg(unix)]
    original: Option<nix::sys::termios::Termios>,
}

#[cfg(unix)]
mod modes {
    use std::io;

    use nix::sys::signal::{Signal, raise};
    use nix::sys::termios::{
        InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr,
    };

    use super::QuietTerminal;

    impl QuietTerminal {
        /// Changes the mode. Without a terminal, nothing is changed.
        pub(in super::super) fn begin() -> Self {
            let quiet = Self { original: tcgetattr(io::stdin()).ok() };
            quiet.set();
            quiet
        }

        /// Changes the mode again if another program has reset it, as a shell does after Ctrl-Z.
        pub(in super::super) fn keep(&self) {
            let now = tcgetattr(io::stdin());
            if now.is_ok_and(|now| now.local_flags.contains(LocalFlags::ECHO)) {
                self.set();
            }
        }

        /// Stops the process until it is continued in the foreground, like Ctrl-Z in other programs.
        pub(in super::super) fn suspend(&self) {
            self.restore();
            // The default action of the signal stops all threads. If it is ignored, nothing happens.
            let _ = raise(Signal::SIGTSTP);
            self.set();
        }

        fn set(&self) {
            let Some(mut quiet) = self.original.clone() else { return };
            quiet.local_flags -= LocalFlags::ECHO | LocalFlags::ICANON;
            quiet.local_flags |= LocalFlags::NOFLSH;
            // Enter arrives as `\r`, as in the mode of the line editor.
            quiet.input_flags -= InputFlags::ICRNL;
            quiet.control_chars[SpecialCharacterIndices::VSUSP as usize] =
                nix::libc::_POSIX_VDISABLE;
            apply(&quiet);
        }

        fn restore(&self) {
            if let Some(original) = &self.original {
                apply(original);
            }
        }
    }

    /// If the change fails, keys are echoed as before.
    fn apply(mode: &Termios) {
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, mode);
    }

    impl Drop for QuietTerminal {
        fn drop(&mut self) {
            self.restore();
        }
    }
}

#[cfg(not(unix))]
impl QuietTerminal {
    /// Does nothing: other systems do not echo keys while no line is read.
    pub(super) fn begin() -> Self {
        Self {}
    }

    /// Does nothing.
    pub(super) fn keep(&self) {}

    /// Does nothing.
    pub(super) fn suspend(&self) {}
}
