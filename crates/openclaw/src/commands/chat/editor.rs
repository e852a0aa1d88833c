//! The line that somebody types: with history, completion and several lines, on a thread of its own.

use std::borrow::Cow;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as blocking;
use std::time::Duration;

use crossterm::event;
use openclaw_tools::private;
use reedline::{
    ColumnarMenu, DefaultHinter, EditCommand, Emacs, ExternalPrinter, FileBackedHistory, KeyCode,
    KeyModifiers, MenuBuilder as _, Prompt, PromptEditMode, PromptHistorySearch, Reedline,
    ReedlineEvent, ReedlineMenu, Signal, ValidationResult, Validator, default_emacs_keybindings,
};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::complete::{Completion, Vocabulary};
use crate::fold::fold;
use crate::output::colour_wanted;
use crate::typed_ahead;

const MENU: &str = "completion";
/// What stands before a message.
const MARK: &str = "› ";
/// How many lines are remembered.
const HISTORY: usize = 2_000;
/// How many lines may wait to be printed above the prompt.
const PRINTED: usize = 64;
/// More keys than that do not wait in a queue.
const MAX_KEYS: usize = 100_000;
/// So many columns are left for an answer behind its question.
const ANSWER: usize = 8;
/// How long the editor may take to let go of the terminal.
const LET_GO: Duration = Duration::from_secs(2);

/// What is asked for.
pub(super) enum Ask {
    /// A message.
    Message,
    /// A choice, with these words before the cursor.
    Choice(String),
}

/// What was typed.
#[derive(Debug)]
pub(super) enum Typed {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    End,
    /// It was given up.
    GivenUp,
    /// The terminal cannot be used.
    Failed(String),
}

/// The editor. Between [`begin`](Self::begin) and what is typed the terminal is its own.
pub(super) struct Editor {
    asks: blocking::SyncSender<Ask>,
    typed: mpsc::Receiver<Typed>,
    printer: blocking::SyncSender<String>,
    give_up: Arc<AtomicBool>,
    is_asking: bool,
}

impl Editor {
    pub(super) fn start(history: &Path, vocabulary: Arc<Vocabulary>) -> Result<Self, String> {
        let give_up = Arc::new(AtomicBool::new(false));
        let printer = ExternalPrinter::new(PRINTED);
        let sender = printer.sender();
        let mut editors = Editors {
            message: for_messages(history, vocabulary, Arc::clone(&give_up))
                .with_external_printer(printer),
            give_up: Arc::clone(&give_up),
        };
        let (asks, asked) = blocking::sync_channel::<Ask>(1);
        let (typed, receiver) = mpsc::channel(1);
        // It ends when nobody asks any more. `is_asking` sees to it that it is not left in a read.
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
        Ok(Self { asks, typed: receiver, printer: sender, give_up, is_asking: false })
    }

    /// Asks. Nothing else may be asked before it is answered.
    pub(super) fn begin(&mut self, ask: Ask) {
        self.give_up.store(false, Ordering::Relaxed);
        self.is_asking = self.asks.try_send(ask).is_ok();
    }

    /// What is typed. Safe to cancel.
    pub(super) async fn typed(&mut self) -> Typed {
        let typed = self.typed.recv().await;
        self.is_asking = false;
        typed.unwrap_or_else(|| Typed::Failed("the line editor has stopped".to_owned()))
    }

    /// Takes a question back, and the terminal with it.
    pub(super) async fn give_up(&mut self) {
        if self.is_asking {
            self.give_up.store(true, Ordering::Relaxed);
            let _ = timeout(LET_GO, self.typed()).await;
        }
    }

    /// A line above the one that is being typed. What does not fit in any more is dropped.
    pub(super) fn print(&self, line: &str) {
        let line = match colour_wanted() {
            true => line.to_owned(),
            false => anstream::adapter::strip_str(line).to_string(),
        };
        let _ = self.printer.try_send(line);
    }
}

/// On the editor's thread.
struct Editors {
    message: Reedline,
    give_up: Arc<AtomicBool>,
}

impl Editors {
    fn read(&mut self, ask: Ask) -> Typed {
        let signal = match ask {
            Ask::Message => self.message.read_line(&Mark(MARK.to_owned())),
            Ask::Choice(words) => {
                forget_typed();
                // A new one each time: what was typed for a question that was taken back would stay in it.
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

/// The last line of a question, which the cursor stands behind. Those above it are shown here: in the editor words
/// would be broken.
fn show_all_but_the_last_line(question: &str) -> String {
    let width = crossterm::terminal::size().map_or(80, |(width, _)| usize::from(width));
    let folded = fold(question, width.saturating_sub(ANSWER));
    let Some((above, last)) = folded.rsplit_once('\n') else { return folded };
    // Where it cannot be shown, the editor fails as well, and says so.
    let _ = writeln!(anstream::stdout().lock(), "{above}");
    last.to_owned()
}

/// Forgets keys that were pressed before a question: at the terminal, and among those that the editor's library
/// has read already, behind the end of a message.
fn forget_typed() {
    typed_ahead::forget();
    for _ in 0..MAX_KEYS {
        if !event::poll(Duration::ZERO).is_ok_and(|waits| waits) || event::read().is_err() {
            return;
        }
    }
}

fn for_messages(history: &Path, vocabulary: Arc<Vocabulary>, give_up: Arc<AtomicBool>) -> Reedline {
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
        .with_completer(Box::new(Completion(vocabulary)))
        .with_partial_completions(true)
        .with_quick_completions(true)
        .with_menu(ReedlineMenu::EngineCompleter(menu))
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_validator(Box::new(Whole))
        .use_bracketed_paste(true)
        .with_break_signal(give_up);
    let hinter = || Box::new(DefaultHinter::default().with_min_chars(2));
    let editor = if colour_wanted() { editor.with_hinter(hinter()) } else { editor };
    // Without a file the history lasts as long as the chat.
    match private_file(history)
        .and_then(|()| FileBackedHistory::with_file(HISTORY, history.to_owned()).ok())
    {
        Some(history) => editor.with_history(Box::new(history)),
        None => editor,
    }
}

/// What was typed is nobody else's business.
fn private_file(file: &Path) -> Option<()> {
    private::options().create(true).append(true).open(file).ok().map(drop)
}

/// Lines that end in a backslash go on in the next one.
fn joined(line: &str) -> String {
    line.replace("\\\n", "\n")
}

/// Whether a message is whole: no line goes on, and no block of code is open.
struct Whole;

impl Validator for Whole {
    fn validate(&self, line: &str) -> ValidationResult {
        let fences = line.lines().filter(|line| line.trim_start().starts_with("```")).count();
        if line.ends_with('\\') || fences % 2 == 1 {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

/// What stands before the cursor.
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
    fn a_message_goes_on_until_it_is_whole() {
        let is_whole = |line| matches!(Whole.validate(line), ValidationResult::Complete);
        assert!(is_whole("hello"));
        assert!(!is_whole("hello \\"));
        assert!(!is_whole("look:\n```rust\nfn main() {}"));
        assert!(is_whole("look:\n```rust\nfn main() {}\n```"));
        assert_eq!(joined("two \\\nlines"), "two \nlines");
    }
}
