//! The line editor, with history, completion and multi-line input. It runs on its own thread.

use std::borrow::Cow;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as blocking;
use std::time::Duration;

use crossterm::event;
use reedline::{
    ColumnarMenu, DefaultHinter, EditCommand, Emacs, ExternalPrinter, FileBackedHistory, KeyCode,
    KeyModifiers, MenuBuilder as _, Prompt, PromptEditMode, PromptHistorySearch, Reedline,
    ReedlineEvent, ReedlineMenu, Signal, ValidationResult, Validator, default_emacs_keybindings,
};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::complete::{Completion, ValuesWanted, Vocabulary};
use crate::fold::fold;
use crate::output::colour_wanted;
use crate::typed_ahead;

const MENU: &str = "completion";
/// The prompt of a message.
const MARK: &str = "› ";
/// The number of lines in the history.
const HISTORY: usize = 2_000;
/// The capacity of the queue of lines to print above the prompt.
const PRINTED: usize = 64;
/// The maximum number of queued key events to discard.
const MAX_KEYS: usize = 100_000;
/// The columns reserved for the answer after a question.
const ANSWER: usize = 8;
/// How long to wait until the editor has released the terminal.
const LET_GO: Duration = Duration::from_secs(2);

/// What to prompt for.
pub(super) enum Ask {
    /// A message.
    Message,
    /// An answer, with this text before the cursor.
    Choice(String),
}

/// The result of a prompt.
#[derive(Debug)]
pub(super) enum Typed {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    End,
    /// The prompt was withdrawn.
    GivenUp,
    /// The terminal cannot be used.
    Failed(String),
}

/// An event of the editor.
#[derive(Debug)]
pub(super) enum EditorEvent {
    /// The result of the prompt.
    Typed(Typed),
    /// A request for the values of an argument. The editor waits for them.
    Values(ValuesWanted),
}

/// The line editor, which owns the terminal from [`begin`](Self::begin) until the result.
pub(super) struct Editor {
    asks: blocking::SyncSender<Ask>,
    typed: mpsc::Receiver<Typed>,
    wanted: mpsc::Receiver<ValuesWanted>,
    printer: blocking::SyncSender<String>,
    give_up: Arc<AtomicBool>,
    is_asking: bool,
}

impl Editor {
    pub(super) fn start(history: &Path, vocabulary: Arc<Vocabulary>) -> Result<Self, String> {
        let give_up = Arc::new(AtomicBool::new(false));
        let printer = ExternalPrinter::new(PRINTED);
        let sender = printer.sender();
        let (want, wanted) = mpsc::channel(1);
        let completion = Completion::new(vocabulary, want);
        let mut editors = Editors {
            message: for_messages(history, completion, Arc::clone(&give_up))
                .with_external_printer(printer),
            give_up: Arc::clone(&give_up),
        };
        let (asks, asked) = blocking::sync_channel::<Ask>(1);
        let (typed, receiver) = mpsc::channel(1);
        // Exits when `asks` is dropped. `is_asking` ensures that it is not left in a read.
        std::thread::Builder::new()
            .name("editor".to_owned())
            .spawn(move || {
                while let Ok(ask) = asked.recv() {
                    if typed.blocking_send(editors.read(ask)).is_err() {
                        return;
                    }
                }
            })
            .map_err(|error| error.to_string())?;
        Ok(Self { asks, typed: receiver, wanted, printer: sender, give_up, is_asking: false })
    }

    /// Shows a prompt. Must not be called again before its result.
    pub(super) fn begin(&mut self, ask: Ask) {
        self.give_up.store(false, Ordering::Relaxed);
        self.is_asking = self.asks.try_send(ask).is_ok();
    }

    /// Waits for the result of the prompt. Cancel-safe.
    pub(super) async fn typed(&mut self) -> Typed {
        let typed = self.typed.recv().await;
        self.is_asking = false;
        typed.unwrap_or_else(|| Typed::Failed("the line editor has stopped".to_owned()))
    }

    /// Waits for the result of the prompt, or for a request for values. Cancel-safe.
    pub(super) async fn event(&mut self) -> EditorEvent {
        let typed = tokio::select! {
            biased;
            typed = self.typed.recv() => typed,
            Some(wanted) = self.wanted.recv() => return EditorEvent::Values(wanted),
        };
        self.is_asking = false;
        let stopped = || Typed::Failed("the line editor has stopped".to_owned());
        EditorEvent::Typed(typed.unwrap_or_else(stopped))
    }

    /// Withdraws the prompt, and waits until the terminal is released. The input of a message is
    /// kept for the next prompt; if it was just completed, it is returned.
    pub(super) async fn give_up(&mut self) -> Typed {
        if !self.is_asking {
            return Typed::GivenUp;
        }
        self.give_up.store(true, Ordering::Relaxed);
        timeout(LET_GO, self.typed()).await.unwrap_or(Typed::GivenUp)
    }

    /// Prints a line above the prompt. If the queue is full, it is dropped.
    pub(super) fn print(&self, line: &str) {
        let line = match colour_wanted() {
            true => line.to_owned(),
            false => anstream::adapter::strip_str(line).to_string(),
        };
        let _ = self.printer.try_send(line);
    }
}

/// The state of the editor's thread.
struct Editors {
    message: Reedline,
    give_up: Arc<AtomicBool>,
}

impl Editors {
    fn read(&mut self, ask: Ask) -> Typed {
        let signal = match ask {
            Ask::Message => {
                let signal = self.message.read_line(&Mark(MARK.to_owned()));
                if matches!(signal, Ok(Signal::ExternalBreak(_))) {
                    erase_line();
                }
                signal
            }
            Ask::Choice(words) => {
                forget_typed();
                // A new one each time: otherwise it keeps the input for a withdrawn question.
                let mut choice = Reedline::create()
                    .with_ansi_colors(colour_wanted())
                    .with_break_signal(Arc::clone(&self.give_up));
                choice.read_line(&Mark(show_all_but_the_last_line(&format!("  {words} "))))
            }
        };
        match signal {
            Ok(Signal::Success(line)) => Typed::Line(joined(&line)),
            Ok(Signal::CtrlC) => Typed::Interrupt,
            Ok(Signal::CtrlD) => Typed::End,
            Ok(_) => Typed::GivenUp,
            Err(error) => Typed::Failed(error.to_string()),
        }
    }
}

/// Erases a withdrawn prompt: what follows takes its place.
fn erase_line() {
    let mut stdout = std::io::stdout().lock();
    // If the write fails, the next one fails, too, and reports it.
    let _ = stdout.write_all(b"\r\x1b[J").and_then(|()| stdout.flush());
}

/// Prints all but the last line of a question, and returns that. The editor would break words.
fn show_all_but_the_last_line(question: &str) -> String {
    let width = crossterm::terminal::size().map_or(80, |(width, _)| usize::from(width));
    let folded = fold(question, width.saturating_sub(ANSWER));
    let Some((above, last)) = folded.rsplit_once('\n') else { return folded };
    // If the write fails, the editor fails, too, and reports it.
    let _ = writeln!(anstream::stdout().lock(), "{above}");
    last.to_owned()
}

/// Discards keys that were pressed before a question: unread input of the terminal, and events that
/// `crossterm` has already read after the end of a message.
fn forget_typed() {
    typed_ahead::forget();
    for _ in 0..MAX_KEYS {
        if !event::poll(Duration::ZERO).is_ok_and(|waits| waits) || event::read().is_err() {
            return;
        }
    }
}

fn for_messages(history: &Path, completion: Completion, give_up: Arc<AtomicBool>) -> Reedline {
    let mut keys = default_emacs_keybindings();
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
    let menu = Box::new(ColumnarMenu::default().with_name(MENU).with_marker(MARK));
    let editor = Reedline::create()
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
    // Without a file, the history is kept in memory only.
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
fn joined(line: &str) -> String {
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

/// The text before the cursor.
struct Mark(String);

impl Prompt for Mark {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        self.0.as_str().into()
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        "… ".into()
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        format!("search `{}`: ", search.term).into()
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
