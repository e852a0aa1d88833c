//! The line editor of messages: its keys, history and completion, and when a message is complete.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reedline::{
    ColumnarMenu, DefaultHinter, EditCommand, Emacs, FileBackedHistory, Highlighter, KeyCode,
    KeyModifiers, Keybindings, MenuBuilder as _, Reedline, ReedlineEvent, ReedlineMenu, StyledText,
    ValidationResult, Validator, default_emacs_keybindings,
};

use super::complete::PromptCompleter;
use crate::output::colour_wanted;

const MENU: &str = "completion";
/// The number of lines in the history.
const HISTORY: usize = 2_000;
/// The command for Ctrl-Z.
pub(super) const SUSPEND: &str = "suspend";

/// Creates the editor of an answer to a question.
pub(super) fn choice_editor(give_up: Arc<AtomicBool>) -> Reedline {
    Reedline::create()
        .with_highlighter(Box::new(TextMonitor::default()))
        .with_ansi_colors(colour_wanted())
        .with_edit_mode(Box::new(Emacs::new(keys())))
        .with_break_signal(give_up)
}

/// The usual keys, and Ctrl-Z.
fn keys() -> Keybindings {
    let mut keys = default_emacs_keybindings();
    let suspend = ReedlineEvent::ExecuteHostCommand(SUSPEND.to_owned());
    keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('z'), suspend);
    keys
}

/// Creates the line editor. Without a history file, the history is kept in memory only.
pub(super) fn line_editor(
    history: &Path,
    completion: PromptCompleter,
    mark: &str,
    give_up: Arc<AtomicBool>,
    has_text: Arc<AtomicBool>,
) -> Reedline {
    let mut keys = keys();
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu(MENU.to_owned()),
            ReedlineEvent::MenuNext,
        ]),
    );
    let new_line = ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
    keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, new_line.clone());
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::Enter, new_line);
    let menu = Box::new(ColumnarMenu::default().with_name(MENU).with_marker(mark));
    let editor = Reedline::create()
        .with_highlighter(Box::new(TextMonitor(has_text)))
        .with_ansi_colors(colour_wanted())
        .with_completer(Box::new(completion))
        .with_partial_completions(true)
        .with_quick_completions(true)
        .with_menu(ReedlineMenu::EngineCompleter(menu))
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_validator(Box::new(CompleteMessage))
        .use_bracketed_paste(true)
        .with_break_signal(give_up);
    let hinter = || Box::new(DefaultHinter::default().with_min_chars(2));
    let editor = if colour_wanted() { editor.with_hinter(hinter()) } else { editor };
    match private_file(history)
        .and_then(|()| FileBackedHistory::with_file(HISTORY, history.to_owned()).ok())
    {
        Some(history) => editor.with_history(Box::new(history)),
        None => editor,
    }
}

/// Creates the history file, readable only by the user.
fn private_file(file: &Path) -> Option<()> {
    let mut options = openclaw_files::private();
    openclaw_files::open_with(file, options.create(true).append(true)).ok().map(drop)
}

/// Removes the backslashes of line continuations.
pub(super) fn joined(line: &str) -> String {
    line.replace("\\\n", "\n")
}

/// Accepts a message if it does not end with a backslash and no code block is open.
struct CompleteMessage;

impl Validator for CompleteMessage {
    fn validate(&self, line: &str) -> ValidationResult {
        let fences = line.lines().filter(|line| line.trim_start().starts_with("```")).count();
        if line.ends_with('\\') || fences % 2 == 1 {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

/// Notices whether there is text at the prompt. The text itself is not highlighted.
#[derive(Default)]
struct TextMonitor(Arc<AtomicBool>);

impl Highlighter for TextMonitor {
    fn highlight(&self, line: &str, _: usize) -> StyledText {
        self.0.store(!line.is_empty(), Ordering::Relaxed);
        // The colour of the terminal: any other may be invisible on its background.
        let mut text = StyledText::new();
        text.push((Default::default(), line.to_owned()));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_continues_after_a_backslash_or_in_a_code_block() {
        let is_whole = |line| matches!(CompleteMessage.validate(line), ValidationResult::Complete);
        assert!(is_whole("hello"));
        assert!(!is_whole("hello \\"));
        assert!(!is_whole("look:\n```rust\nfn main() {}"));
        assert!(is_whole("look:\n```rust\nfn main() {}\n```"));
        assert_eq!(joined("two \\\nlines"), "two \nlines");
    }
}
