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
                let list = numbered(&items);
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

/// Lists the entries with their numbers, aligned.
fn numbered(items: &[Item]) -> String {
    let digits = items.len().to_string().len();
    let line = |(at, item): (usize, &Item)| format!("{:>digits$} {}\n", at + 1, item.label);
    items.iter().enumerate().map(line).collect()
}

fn write(text: &str) {
    let mut stdout = anstream::stdout().lock();
    // If the write fails, the terminal is gone, and so is stdin.
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_list_are_aligned() {
        let item = |at: usize| Item { value: format!("key-{at}"), label: format!("Title {at}") };
        let list = numbered(&(1..=10).map(item).collect::<Vec<_>>());
        assert!(list.starts_with(" 1 Title 1\n 2 Title 2\n"), "{list}");
        assert!(list.ends_with(" 9 Title 9\n10 Title 10\n"), "{list}");
        assert_eq!(numbered(&[item(1)]), "1 Title 1\n");
    }
}
