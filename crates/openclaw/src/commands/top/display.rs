//! Draws frames: on the whole terminal, or as lines where that is not possible.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use tokio::sync::mpsc;

use super::frame;
use super::numbers::Window;
use crate::edge::has_utf8;
use crate::output::{Output, colour_wanted};
use openclaw_terminal::ascii::ascii_columns;

/// The other screen, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// A terminal that supports it shows what is between these at once.
const BEGIN_UPDATE: &str = "\x1b[?2026h";
const END_UPDATE: &str = "\x1b[?2026l";
/// How often the reader of keys checks whether it should stop.
const LOOK: Duration = Duration::from_millis(100);
/// Keys that wait to be handled; more are dropped.
const PENDING: usize = 8;

/// What the user did.
pub(super) enum Input {
    Quit,
    /// The size of the terminal has changed.
    Redraw,
}

/// Where frames are drawn.
pub(super) enum Display {
    /// On the whole terminal.
    Live(RawTerminal),
    /// As lines, one frame after the other.
    Lines,
}

impl Display {
    /// Takes over the terminal, which is restored on drop.
    pub(super) fn live(output: &mut Output) -> io::Result<Self> {
        enable_raw_mode()?;
        let terminal = RawTerminal::start();
        output.command(ENTER);
        terminal.map(Self::Live)
    }

    pub(super) fn show(&mut self, window: &Window, output: &mut Output) {
        let width = output.columns().unwrap_or(80).max(1);
        match self {
            Self::Lines => {
                let mut lines = frame::lines(window, width, None);
                lines.push(String::new());
                lines.iter().for_each(|line| output.line(line));
                output.flush();
            }
            Self::Live(_) => {
                let height = output.lines().unwrap_or(24);
                output.command(&drawn(&frame::lines(window, width, Some(height))));
            }
        }
    }

    /// Waits for the user. Cancel-safe.
    pub(super) async fn input(&mut self) -> Input {
        match self {
            Self::Lines => std::future::pending().await,
            // Without a reader of keys, signals still end the program.
            Self::Live(terminal) => match terminal.inputs.recv().await {
                Some(input) => input,
                None => std::future::pending().await,
            },
        }
    }
}

/// Overwrites the frame before: nothing is erased first, so nothing flickers.
fn drawn(lines: &[String]) -> String {
    let mut text = format!("{BEGIN_UPDATE}\x1b[H");
    for (at, line) in lines.iter().enumerate() {
        let line = match colour_wanted() {
            true => line.clone(),
            false => anstream::adapter::strip_str(line).to_string(),
        };
        let line = if has_utf8() { line } else { ascii_columns(&line).into_owned() };
        // No line break after the last line: it would scroll.
        let end = if at + 1 < lines.len() { "\r\n" } else { "" };
        let _ = write!(text, "{line}\x1b[K{end}");
    }
    text.push_str("\x1b[J");
    text.push_str(END_UPDATE);
    text
}

/// The terminal in raw mode, with a thread that reads keys.
pub(super) struct RawTerminal {
    inputs: mpsc::Receiver<Input>,
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl RawTerminal {
    fn start() -> io::Result<Self> {
        let (sender, inputs) = mpsc::channel(PENDING);
        let is_over = Arc::new(AtomicBool::new(false));
        let mut terminal = Self { inputs, is_over: Arc::clone(&is_over), reader: None };
        let reader = std::thread::Builder::new().name("keys".to_owned());
        terminal.reader = Some(reader.spawn(move || read(&sender, &is_over))?);
        Ok(terminal)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            // It ends soon, and must not read what is typed afterwards.
            let _ = reader.join();
        }
        let _ = io::Write::write_all(&mut io::stdout(), LEAVE.as_bytes());
        let _ = io::Write::flush(&mut io::stdout());
        let _ = disable_raw_mode();
    }
}

fn read(sender: &mpsc::Sender<Input>, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let input = match event::poll(LOOK) {
            Ok(false) => continue,
            Ok(true) => event::read(),
            // The terminal is gone: a signal ends the program.
            Err(_) => return,
        };
        let input = match input {
            Ok(Event::Key(key)) if quits(key) => Input::Quit,
            Ok(Event::Resize(..)) => Input::Redraw,
            Ok(_) => continue,
            Err(_) => return,
        };
        // More than fit in the queue change nothing.
        let _ = sender.try_send(input);
    }
}

fn quits(key: KeyEvent) -> bool {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind != KeyEventKind::Release
        && match key.code {
            KeyCode::Char('c' | 'd') => is_control,
            KeyCode::Char('q' | 'Q') => !is_control,
            KeyCode::Esc => true,
            _ => false,
        }
}
