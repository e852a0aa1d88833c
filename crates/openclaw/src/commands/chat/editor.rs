//! The line editor, with history, completion and multi-line input. It runs on its own thread, which
//! also collects what is typed while no prompt is shown.

use std::borrow::Cow;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as blocking;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossterm::event;
use reedline::{
    EditCommand, ExternalPrinter, HistoryItem, Prompt, PromptEditMode, PromptHistorySearch,
    Reedline, Signal,
};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::ahead::TypedAhead;
use super::complete::{PromptCompleter, ValuesWanted, Vocabulary};
use super::line_editor::{SUSPEND, choice_editor, joined, line_editor};
use super::paths::PathRoots;
use super::picker::{Item, pick};
use super::plain::PlainPrompts;
use super::tty::QuietTerminal;
use crate::log_writer::show_above_prompt;
use crate::output::coloured;
use openclaw_terminal::ascii::ascii;
use openclaw_terminal::pictures::{PictureProtocol, Pictures};
use openclaw_terminal::wrap::wrap;

/// The capacity of the queue of lines to print above the prompt.
const PRINTED: usize = 64;
/// The maximum number of queued key events to take before a prompt.
const MAX_KEYS: usize = 100_000;
/// The columns reserved for the answer after a question.
const ANSWER: usize = 8;
/// How long to wait until the editor has released the terminal.
const LET_GO: Duration = Duration::from_secs(2);
/// How long to wait for a key before checking whether a prompt is requested.
const CHECK: Duration = Duration::from_millis(20);

/// What to prompt for.
pub(super) enum Ask {
    /// A message.
    Message,
    /// An answer, with this text before the cursor.
    Choice(String),
    /// One of these entries, under this title. The result is the value of the entry as a line.
    Pick(&'static str, Vec<Item>),
}

/// The result of a prompt.
#[derive(Debug)]
pub(super) enum Typed {
    Line(String),
    /// Ctrl-C. At the prompt of a message, only if nothing was typed.
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
    /// `None` while the editor is dropped.
    asks: Option<blocking::SyncSender<Ask>>,
    typed: mpsc::Receiver<Typed>,
    wanted: mpsc::Receiver<ValuesWanted>,
    printer: blocking::SyncSender<String>,
    give_up: Arc<AtomicBool>,
    is_asking: bool,
    ahead: Arc<Mutex<TypedAhead>>,
    thread: Option<JoinHandle<()>>,
    /// Whether the terminal does not show UTF-8.
    is_ascii: bool,
    /// Used instead of the thread on terminals without cursor movements.
    plain: Option<PlainPrompts>,
}

impl Editor {
    pub(super) fn start(
        history: &Path,
        vocabulary: Arc<Vocabulary>,
        roots: PathRoots,
        pictures: Pictures,
        mark: &'static str,
    ) -> Result<Self, String> {
        let give_up = Arc::new(AtomicBool::new(false));
        let printer = ExternalPrinter::new(PRINTED);
        let sender = printer.sender();
        let (want, wanted) = mpsc::channel(1);
        let completion = PromptCompleter::new(vocabulary, want, roots);
        let (has_text, ahead) = (Arc::default(), Arc::default());
        let (withdrawn, has_any) = (Arc::clone(&give_up), Arc::clone(&has_text));
        let message = line_editor(history, completion, mark, withdrawn, has_any)
            .with_external_printer(printer);
        let (asks, asked) = blocking::sync_channel::<Ask>(1);
        let (typed, receiver) = mpsc::channel(1);
        let thread = std::thread::Builder::new().name("editor".to_owned()).spawn({
            let (give_up, ahead) = (Arc::clone(&give_up), Arc::clone(&ahead));
            move || {
                let terminal = QuietTerminal::begin();
                let mut editors = Editors { message, mark, give_up, has_text, ahead, terminal };
                if pictures.asks() {
                    pictures.found(editors.ask_for_pictures());
                }
                while let Some(ask) = editors.collect(&asked) {
                    if typed.blocking_send(editors.read(ask)).is_err() {
                        return;
                    }
                }
            }
        });
        Ok(Self {
            asks: Some(asks),
            typed: receiver,
            wanted,
            printer: sender,
            give_up,
            is_asking: false,
            ahead,
            thread: Some(thread.map_err(|error| error.to_string())?),
            is_ascii: mark.is_ascii(),
            plain: None,
        })
    }

    /// Creates an editor that reads whole lines and draws nothing twice, for screen readers and
    /// terminals without cursor movements (`TERM=dumb`).
    pub(super) fn plain(mark: &'static str) -> Self {
        Self {
            asks: None,
            typed: mpsc::channel(1).1,
            wanted: mpsc::channel(1).1,
            printer: blocking::sync_channel(0).0,
            give_up: Arc::default(),
            is_asking: false,
            ahead: Arc::default(),
            thread: None,
            is_ascii: mark.is_ascii(),
            plain: Some(PlainPrompts::new(mark)),
        }
    }

    /// Whether lines can be redrawn.
    pub(super) fn can_draw(&self) -> bool {
        self.plain.is_none()
    }

    /// Shows a prompt. Must not be called again before its result.
    pub(super) fn begin(&mut self, ask: Ask) {
        let ask = match ask {
            Ask::Choice(words) if self.is_ascii => Ask::Choice(ascii(&words).into_owned()),
            ask => ask,
        };
        if let Some(plain) = &mut self.plain {
            self.is_asking = true;
            return plain.begin(ask);
        }
        self.give_up.store(false, Ordering::Relaxed);
        show_above_prompt(Some(self.printer.clone()));
        self.is_asking = self.asks.as_ref().is_some_and(|asks| asks.try_send(ask).is_ok());
    }

    /// Waits for the result of the prompt. Cancel-safe.
    pub(super) async fn typed(&mut self) -> Typed {
        let typed = match &mut self.plain {
            Some(plain) => Some(plain.typed().await),
            None => self.typed.recv().await,
        };
        self.is_asking = false;
        show_above_prompt(None);
        typed.unwrap_or_else(|| Typed::Failed("the line editor has stopped".to_owned()))
    }

    /// Waits for the result of the prompt, or for a request for values. Cancel-safe.
    pub(super) async fn event(&mut self) -> EditorEvent {
        if self.plain.is_some() {
            return EditorEvent::Typed(self.typed().await);
        }
        let typed = tokio::select! {
            biased;
            typed = self.typed.recv() => typed,
            Some(wanted) = self.wanted.recv() => return EditorEvent::Values(wanted),
        };
        self.is_asking = false;
        show_above_prompt(None);
        let stopped = || Typed::Failed("the line editor has stopped".to_owned());
        EditorEvent::Typed(typed.unwrap_or_else(stopped))
    }

    /// Withdraws the prompt, and waits until the terminal is released. The input of a message is
    /// kept for the next prompt; if it was just completed, it is returned.
    pub(super) async fn give_up(&mut self) -> Typed {
        if !self.is_asking {
            return Typed::GivenUp;
        }
        if self.plain.is_some() {
            // The line that is being typed is read by the next prompt.
            end_line();
            self.is_asking = false;
            return Typed::GivenUp;
        }
        self.give_up.store(true, Ordering::Relaxed);
        timeout(LET_GO, self.typed()).await.unwrap_or(Typed::GivenUp)
    }

    /// Leaves the thread alone, because the terminal is gone: its reads return nothing without end.
    pub(super) fn abandon(&mut self) {
        self.thread = None;
    }

    /// Keeps lines that were typed ahead from being sent: the user may want to change them.
    pub(super) fn hold_back(&self) {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).hold_back();
    }

    /// Puts a message into the next prompt, before what was typed ahead. Plain prompts cannot be
    /// filled. Returns whether it is in the prompt.
    pub(super) fn put_back(&self, message: &str) -> bool {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).put_back(message);
        self.can_draw()
    }

    /// Prints a line above the prompt. If the queue is full, it is dropped.
    pub(super) fn print(&self, line: &str) {
        let line = if self.is_ascii { ascii(line) } else { line.into() };
        match &self.plain {
            Some(plain) => plain.print(&line),
            None => drop(self.printer.try_send(coloured(&line).into_owned())),
        }
    }
}

impl Drop for Editor {
    /// Waits until the terminal is as it was, but not for long: if the terminal is gone, a read of it
    /// may never end.
    fn drop(&mut self) {
        show_above_prompt(None);
        self.give_up.store(true, Ordering::Relaxed);
        drop(self.asks.take());
        self.typed.close();
        let deadline = Instant::now() + LET_GO;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
            && Instant::now() < deadline
        {
            std::thread::sleep(CHECK / 2);
        }
    }
}

/// The state of the editor's thread.
struct Editors {
    message: Reedline,
    /// The prompt of a message.
    mark: &'static str,
    give_up: Arc<AtomicBool>,
    /// Whether there was text at the prompt of a message.
    has_text: Arc<AtomicBool>,
    ahead: Arc<Mutex<TypedAhead>>,
    terminal: QuietTerminal,
}

impl Editors {
    /// Asks the terminal how it shows pictures. What is typed meanwhile is collected.
    fn ask_for_pictures(&self) -> Option<PictureProtocol> {
        let answers = self.terminal.ask();
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).add_read(&answers.typed);
        answers.protocol
    }

    /// Collects what is typed until a prompt is requested; `None` if the editor was dropped.
    fn collect(&self, asked: &blocking::Receiver<Ask>) -> Option<Ask> {
        loop {
            match asked.try_recv() {
                Ok(ask) => return Some(ask),
                Err(blocking::TryRecvError::Disconnected) => return None,
                Err(blocking::TryRecvError::Empty) => {}
            }
            self.terminal.keep();
            match event::poll(CHECK) {
                Ok(false) => {}
                Ok(true) => self.collect_key(),
                // Without keys, only prompts are left to wait for.
                Err(_) => return asked.recv().ok(),
            }
        }
    }

    fn collect_key(&self) {
        let Ok(key) = event::read() else { return };
        let is_suspend = self.ahead.lock().unwrap_or_else(PoisonError::into_inner).add(key);
        if is_suspend {
            self.terminal.suspend();
        }
    }

    /// Collects the keys that were pressed until now.
    fn collect_rest(&self) {
        for _ in 0..MAX_KEYS {
            if !event::poll(Duration::ZERO).is_ok_and(|waits| waits) {
                return;
            }
            self.collect_key();
        }
    }

    /// Returns a message that was typed ahead, or shows the prompt with the text that was.
    fn message(&mut self) -> std::io::Result<Signal> {
        self.collect_rest();
        let (line, rest) = {
            let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
            let line = ahead.next_line();
            let rest = if line.is_none() { ahead.take_rest() } else { String::new() };
            (line, rest)
        };
        if let Some(line) = line {
            // If the write or the history fails, the message is sent nevertheless.
            let _ = writeln!(anstream::stdout().lock(), "{}{line}", self.mark);
            let _ = self.message.history_mut().save(HistoryItem::from_command_line(&line));
            return Ok(Signal::Success(line));
        }
        if !rest.is_empty() {
            self.message.run_edit_commands(&[EditCommand::InsertString(rest)]);
        }
        self.has_text.store(false, Ordering::Relaxed);
        loop {
            match self.message.read_line(&Mark(self.mark.to_owned()))? {
                Signal::HostCommand(command) if command == SUSPEND => self.terminal.suspend(),
                Signal::CtrlC if self.has_text.load(Ordering::Relaxed) => {
                    return Ok(Signal::Success(String::new()));
                }
                signal => return Ok(signal),
            }
        }
    }

    fn read(&mut self, ask: Ask) -> Typed {
        let signal = match ask {
            Ask::Message => {
                let signal = self.message();
                if matches!(signal, Ok(Signal::ExternalBreak(_))) {
                    erase_line();
                }
                signal
            }
            Ask::Pick(title, items) => {
                return match pick(title, &items, &self.give_up) {
                    Ok(Some(value)) => Typed::Line(value),
                    Ok(None) => Typed::End,
                    Err(error) => Typed::Failed(error.to_string()),
                };
            }
            Ask::Choice(words) => {
                // Not the answer, and not a message that the user would still send unchanged.
                self.collect_rest();
                self.ahead.lock().unwrap_or_else(PoisonError::into_inner).hold_back();
                // A new one each time: otherwise it keeps the input for a withdrawn question.
                let mut choice = choice_editor(Arc::clone(&self.give_up));
                let mark = Mark(show_all_but_the_last_line(&format!("  {words} ")));
                let signal = loop {
                    match choice.read_line(&mark) {
                        Ok(Signal::HostCommand(command)) if command == SUSPEND => {
                            self.terminal.suspend();
                        }
                        signal => break signal,
                    }
                };
                if matches!(signal, Ok(Signal::ExternalBreak(_))) {
                    end_line();
                }
                signal
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

/// Ends the line of a withdrawn question: what follows begins a new one.
fn end_line() {
    // If the write fails, the next one fails, too, and reports it.
    let _ = writeln!(std::io::stdout().lock());
}

/// Wraps a question, and leaves room for the answer.
pub(super) fn folded(question: &str) -> String {
    // Some terminals do not know their size, and say 0.
    let width = crossterm::terminal::size().map_or(0, |(width, _)| usize::from(width));
    let width = if width == 0 { 80 } else { width };
    wrap(question, width.saturating_sub(ANSWER))
}

/// Prints all but the last line of a question, and returns that. The editor would break words.
fn show_all_but_the_last_line(question: &str) -> String {
    let folded = folded(question);
    let Some((above, last)) = folded.rsplit_once('\n') else { return folded };
    // If the write fails, the editor fails, too, and reports it.
    let _ = writeln!(anstream::stdout().lock(), "{above}");
    last.to_owned()
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
        if self.0.is_ascii() { ". ".into() } else { "… ".into() }
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        format!("search `{}`: ", search.term).into()
    }
}
