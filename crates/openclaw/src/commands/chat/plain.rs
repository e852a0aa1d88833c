//! Prompts on a terminal without cursor movements: whole lines are read, and nothing is redrawn.

use std::io::Write as _;

use super::editor::{Ask, Typed, folded};
use super::picker::Item;
use crate::commands::talk::InputLines;

/// Prompts for whole lines.
pub(super) struct PlainPrompts {
    lines: InputLines,
    /// The prompt of a message.
    mark: &'static str,
    /// The entries to choose from by number.
    items: Vec<Item>,
}

impl PlainPrompts {
    pub(super) fn new(mark: &'static str) -> Self {
        Self { lines: InputLines::of_stdin(), mark, items: Vec::new() }
    }

    /// Shows a prompt. Input that was typed before a question is discarded; before a message, it is the
    /// message.
    pub(super) fn begin(&mut self, ask: Ask) {
        self.items.clear();
        let text = match ask {
            Ask::Message => self.mark.to_owned(),
            Ask::Choice(words) => {
                self.lines.forget();
                folded(&format!("  {words} "))
            }
            Ask::Pick(title, items) => {
                self.lines.forget();
                let entries = items.iter().enumerate();
                let entries = entries.map(|(at, item)| format!("{} {}\n", at + 1, item.label));
                let list = entries.collect::<String>();
                self.items = items;
                format!("{title}\n{list}number (empty for none): ")
            }
        };
        write(&text);
    }

    /// Prints a line while the prompt of a message is shown, which is shown again after it.
    pub(super) fn print(&self, line: &str) {
        write(&format!("\n{line}\n{}", self.mark));
    }

    /// Waits for a line. Cancel-safe.
    pub(super) async fn typed(&mut self) -> Typed {
        let line = match self.lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => {
                // Ctrl-D does not end the line.
                write("\n");
                return Typed::End;
            }
            Err(error) => return Typed::Failed(error.to_string()),
        };
        if self.items.is_empty() {
            return Typed::Line(line);
        }
        let number = line.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        match number.and_then(|at| self.items.get(at)) {
            Some(item) => Typed::Line(item.value.clone()),
            None => Typed::End,
        }
    }
}

fn write(text: &str) {
    let mut stdout = anstream::stdout().lock();
    // If the write fails, the terminal is gone, and so is stdin.
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
