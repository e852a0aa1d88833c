//! The mode of the terminal while no prompt is shown: keys are not echoed into the output, and
//! Ctrl-C does not discard them.

/// The terminal in that mode; dropping it restores the original mode.
pub(super) struct QuietTerminal {
    #[cfg(unix)]
    original: Option<nix::sys::termios::Termios>,
}

#[cfg(unix)]
mod modes {
    use std::io::{self, Write as _};
    use std::time::{Duration, Instant};

    use nix::sys::signal::{Signal, raise};
    use nix::sys::termios::{
        InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr,
    };

    use nix::unistd::read;

    use super::QuietTerminal;
    use openclaw_terminal::pictures::TerminalAnswers;
    use openclaw_terminal::pictures::query::QUERY;

    /// How long a terminal may take to answer.
    const PATIENCE: Duration = Duration::from_millis(300);
    /// The maximum size of the answers with what is typed meanwhile, in bytes.
    const MAX_READ: usize = 16 * 1024;

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

        /// Asks the terminal how it shows pictures.
        pub(in super::super) fn ask(&self) -> TerminalAnswers {
            let Some(mut mode) = self.quiet() else { return TerminalAnswers::default() };
            // A read returns after a tenth of a second even if there is nothing.
            mode.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
            mode.control_chars[SpecialCharacterIndices::VTIME as usize] = 1;
            apply(&mode);
            let answers = question_and_answers();
            self.set();
            answers
        }

        fn set(&self) {
            if let Some(quiet) = self.quiet() {
                apply(&quiet);
            }
        }

        fn quiet(&self) -> Option<Termios> {
            let mut quiet = self.original.clone()?;
            quiet.local_flags -= LocalFlags::ECHO | LocalFlags::ICANON;
            quiet.local_flags |= LocalFlags::NOFLSH;
            // Enter arrives as `\r`, as in the mode of the line editor.
            quiet.input_flags -= InputFlags::ICRNL;
            quiet.control_chars[SpecialCharacterIndices::VSUSP as usize] =
                nix::libc::_POSIX_VDISABLE;
            Some(quiet)
        }

        fn restore(&self) {
            if let Some(original) = &self.original {
                apply(original);
            }
        }
    }

    fn question_and_answers() -> TerminalAnswers {
        let mut stdout = io::stdout().lock();
        if stdout.write_all(QUERY.as_bytes()).and_then(|()| stdout.flush()).is_err() {
            return TerminalAnswers::default();
        }
        drop(stdout);
        let (deadline, mut all) = (Instant::now() + PATIENCE, Vec::new());
        loop {
            let mut part = [0; 1024];
            // An error, as of a signal, is like a read without a result.
            let count = read(io::stdin(), &mut part).unwrap_or(0);
            all.extend_from_slice(&part[..count]);
            let answers = TerminalAnswers::of(&String::from_utf8_lossy(&all));
            if answers.is_complete || Instant::now() >= deadline || all.len() >= MAX_READ {
                return answers;
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

    /// Does not ask.
    pub(super) fn ask(&self) -> openclaw_terminal::pictures::TerminalAnswers {
        openclaw_terminal::pictures::TerminalAnswers::default()
    }
}
