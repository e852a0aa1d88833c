//! Reads a line from the terminal without showing it.

use std::io::{self, Write as _};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use openclaw_secrets::SecretString;

/// The maximum number of characters.
const MAX_CHARS: usize = 16_384;

/// Turns the usual mode of the terminal on again.
struct RawMode;

impl Drop for RawMode {
    fn drop(&mut self) {
        // There is nothing to do about a failure.
        let _ = disable_raw_mode();
    }
}

/// Asks for a line that is not shown; `None` if the user pressed Ctrl-C or Ctrl-D.
pub(crate) fn ask(question: &str) -> io::Result<Option<SecretString>> {
    let say = |text: &str| {
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    };
    let line = {
        // Before the question: an answer typed at once must not be shown.
        enable_raw_mode()?;
        let _raw = RawMode;
        say(question);
        line()
    };
    say("\n");
    line
}

fn line() -> io::Result<Option<SecretString>> {
    let mut text = String::new();
    loop {
        match read()? {
            Event::Key(KeyEvent { kind: KeyEventKind::Release, .. }) => {}
            Event::Key(KeyEvent { code, modifiers, .. }) => {
                let is_control = modifiers.contains(KeyModifiers::CONTROL);
                match code {
                    KeyCode::Enter => return Ok(Some(text.into())),
                    KeyCode::Char('c' | 'd') if is_control => return Ok(None),
                    KeyCode::Char('j' | 'm') if is_control => return Ok(Some(text.into())),
                    KeyCode::Char('u') if is_control => text.clear(),
                    KeyCode::Backspace => drop(text.pop()),
                    KeyCode::Char(c) if !is_control && text.len() < MAX_CHARS => text.push(c),
                    _ => {}
                }
            }
            Event::Paste(pasted) => {
                let room = MAX_CHARS.saturating_sub(text.len());
                text.extend(pasted.chars().filter(|c| !c.is_control()).take(room));
            }
            _ => {}
        }
    }
}
