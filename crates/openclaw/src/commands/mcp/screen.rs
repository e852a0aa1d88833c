//! Shows the progress of starting servers and of running calls on a terminal. The lines are erased
//! at the end; without a terminal, nothing is shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openclaw_gateway::mcp::retrying;
use openclaw_mcp::server::status::{ServerState, ServerStatus};
use openclaw_protocol::mcp::{ProgressEvent, ServersParams};
use openclaw_protocol::{Surface, rpc};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::commands::link::look;
use crate::output::{colour_wanted, cut, plural, printable};
use openclaw_terminal::style::{BAD, FAINT, GOOD, STRONG, WARNING};

/// How long to wait before anything is shown.
const QUIET: Duration = Duration::from_millis(300);
/// The interval of redrawing.
const EVERY: Duration = Duration::from_millis(100);
/// The maximum width of the name column.
const NAME_COLUMN: usize = 30;
const WHEEL: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The status lines on stderr. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Screen {
    can_draw: bool,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Whether a prompt is shown: nothing may be drawn meanwhile.
    is_asking: AtomicBool,
    /// The number of lines on the screen.
    lines: AtomicUsize,
    drawing: Mutex<()>,
}

impl Screen {
    pub(super) fn new(can_draw: bool) -> Self {
        Self { can_draw, shared: Arc::default() }
    }

    /// Waits for work that starts servers, and shows their state meanwhile.
    pub(super) async fn show_while<T>(
        &self,
        mut starting: Starting<'_>,
        work: impl Future<Output = T>,
    ) -> T {
        if !self.can_draw {
            return work.await;
        }
        self.animate(async |wheel| starting.lines(wheel).await, work).await
    }

    /// Waits for a call, and shows the start of its server and the progress of the call meanwhile.
    pub(super) async fn show_call<T>(
        &self,
        what: &str,
        mut starting: Starting<'_>,
        progress: &watch::Receiver<Option<ProgressEvent>>,
        work: impl Future<Output = T>,
    ) -> T {
        if !self.can_draw {
            return work.await;
        }
        let since = Instant::now();
        let lines = async |wheel| {
            let is_told = progress.borrow().is_some();
            if !is_told && starting.server.is_some() {
                let lines = starting.lines(wheel).await;
                if lines.iter().any(|line| line.stage != Stage::Ready) {
                    return lines;
                }
            }
            let rest = under_way(since.elapsed(), progress.borrow().as_ref());
            vec![Line { mark: wheel, stage: Stage::UnderWay, name: what.to_owned(), rest }]
        };
        self.animate(lines, work).await
    }

    pub(super) fn can_draw(&self) -> bool {
        self.can_draw
    }

    /// Redraws lines until the work is done. Cancel-safe: the lines are erased on drop.
    async fn animate<T>(
        &self,
        mut lines: impl AsyncFnMut(char) -> Vec<Line>,
        work: impl Future<Output = T>,
    ) -> T {
        let _drawn = Drawn(self);
        let mut work = std::pin::pin!(work);
        let mut pause = QUIET;
        let mut turn = 0;
        loop {
            let wheel = WHEEL[turn % WHEEL.len()];
            let lines = async {
                sleep(pause).await;
                lines(wheel).await
            };
            tokio::select! {
                biased;
                done = &mut work => return done,
                lines = lines => {
                    let (width, height) = size();
                    self.draw(&lines, width, height);
                    pause = EVERY;
                    turn += 1;
                }
            }
        }
    }

    /// Erases the lines, and draws none until [`end_asking`](Self::end_asking).
    pub(super) fn begin_asking(&self) {
        self.shared.is_asking.store(true, Ordering::Release);
        self.clear();
    }

    pub(super) fn end_asking(&self) {
        self.shared.is_asking.store(false, Ordering::Release);
    }

    /// Erases the lines.
    pub(super) fn clear(&self) {
        let _drawing = self.shared.drawing.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = self.shared.lines.swap(0, Ordering::AcqRel);
        if lines > 0 {
            // The terminal echoes Ctrl-C, so the cursor may not be at the start of the line.
            let _ = write!(std::io::stderr(), "\r\x1b[{lines}A\x1b[J");
        }
    }

    fn draw(&self, lines: &[Line], width: usize, height: usize) {
        if self.shared.is_asking.load(Ordering::Acquire) {
            return;
        }
        let _drawing = self.shared.drawing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.shared.lines.load(Ordering::Acquire);
        let mut text = String::new();
        if before > 0 {
            let _ = write!(text, "\r\x1b[{before}A");
        }
        // Lines that have scrolled off the terminal cannot be redrawn.
        let fitting = height.saturating_sub(2).max(1);
        let column = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
        let column = column.min(NAME_COLUMN);
        let (chosen, rest) = chosen(lines, fitting);
        for line in &chosen {
            let _ = writeln!(text, "\x1b[2K{}", line.shown(column, width, colour_wanted()));
        }
        if let Some(rest) = &rest {
            let _ = writeln!(text, "\x1b[2K{}", cut(rest, width.saturating_sub(1)));
        }
        text.push_str("\x1b[J");
        let mut stderr = std::io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes());
        let _ = stderr.flush();
        self.shared.lines.store(chosen.len() + usize::from(rest.is_some()), Ordering::Release);
    }
}

/// Returns the lines that fit, unfinished ones first, and a summary if there are more.
fn chosen(lines: &[Line], room: usize) -> (Vec<&Line>, Option<String>) {
    let mut chosen: Vec<&Line> = lines.iter().collect();
    if lines.len() <= room {
        return (chosen, None);
    }
    chosen.sort_by_key(|line| line.stage);
    chosen.truncate(room.saturating_sub(1));
    let count = |stage| lines.iter().filter(|line| line.stage == stage).count();
    let mut words = format!("  {} of {} ready", count(Stage::Ready), lines.len());
    let failed = count(Stage::Failed);
    if failed > 0 {
        let _ = write!(words, ", {failed} not available");
    }
    (chosen, Some(words))
}

/// Erases the lines on drop.
struct Drawn<'a>(&'a Screen);

impl Drop for Drawn<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// Formats the progress of a call: `2.1 s  30%  Reading chapter 3`.
fn under_way(elapsed: Duration, progress: Option<&ProgressEvent>) -> String {
    let mut words = vec![format!("{:.1} s", elapsed.as_secs_f64())];
    if let Some(progress) = progress {
        words.push(match progress.percent {
            Some(percent) => format!("{percent:.0}%"),
            None => format!("{}", progress.done),
        });
        words.extend(progress.message.clone());
    }
    words.join("  ")
}

fn size() -> (usize, usize) {
    let size = terminal_size::terminal_size_of(std::io::stderr());
    size.map_or((80, 24), |(width, height)| (width.0.into(), height.0.into()))
}

/// The starting servers of an agent, or one of them.
pub(super) struct Starting<'a> {
    pub(super) surface: &'a dyn Surface,
    pub(super) agent: Option<&'a str>,
    pub(super) server: Option<&'a str>,
    since: Instant,
    /// How long each took to start.
    took: BTreeMap<String, Duration>,
}

/// The state of a line, in the order in which lines are shown if not all fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    UnderWay,
    Troubled,
    Failed,
    Ready,
    Idle,
}

impl Stage {
    fn style(self) -> anstyle::Style {
        match self {
            Self::UnderWay | Self::Idle => FAINT,
            Self::Troubled => WARNING,
            Self::Failed => BAD,
            Self::Ready => GOOD,
        }
    }
}

struct Line {
    mark: char,
    stage: Stage,
    name: String,
    rest: String,
}

impl<'a> Starting<'a> {
    pub(super) fn new(
        surface: &'a dyn Surface,
        agent: Option<&'a str>,
        server: Option<&'a str>,
    ) -> Self {
        Self { surface, agent, server, since: Instant::now(), took: BTreeMap::new() }
    }

    /// Returns the current lines, without disabled servers.
    async fn lines(&mut self, wheel: char) -> Vec<Line> {
        let params = ServersParams { agent_id: self.agent.map(ToOwned::to_owned) };
        let Ok(answer) = look::<rpc::McpServers>(self.surface, params).await else {
            return Vec::new();
        };
        let statuses = answer.servers.iter();
        let statuses = statuses.filter_map(|raw| serde_json::from_str(raw.get()).ok());
        let is_shown = |status: &ServerStatus| {
            status.state != ServerState::Disabled
                && self.server.is_none_or(|server| server == status.name)
        };
        let statuses: Vec<ServerStatus> = statuses.filter(is_shown).collect();
        statuses.into_iter().map(|status| self.line(status, wheel)).collect()
    }

    fn line(&mut self, status: ServerStatus, wheel: char) -> Line {
        let elapsed = self.since.elapsed();
        let took = match status.state {
            ServerState::Connecting => {
                self.took.remove(&status.name);
                elapsed
            }
            _ => *self.took.entry(status.name.clone()).or_insert(elapsed),
        };
        let took = format!("{:.1} s", took.as_secs_f64());
        let (mark, stage, rest) = match status.state {
            ServerState::Connecting => (wheel, Stage::UnderWay, took),
            ServerState::Idle | ServerState::Disabled => ('·', Stage::Idle, "idle".to_owned()),
            ServerState::Ready => {
                ('✓', Stage::Ready, format!("{} ({took})", plural(status.tools, "tool")))
            }
            ServerState::Restarting => {
                let words = retrying(&status);
                let why = status.last_error.map(|trouble| format!("{words}: {}", trouble.message));
                (wheel, Stage::Troubled, why.unwrap_or(words))
            }
            ServerState::NeedsAuth | ServerState::Failed | ServerState::Closed => {
                let why = status.last_error.map(|trouble| trouble.message);
                ('✗', Stage::Failed, why.unwrap_or_else(|| "not available".to_owned()))
            }
        };
        Line { mark, stage, name: status.name, rest }
    }
}

impl Line {
    /// Formats the line with a name column of this width, truncated to one line of the terminal.
    fn shown(&self, column: usize, width: usize, colour: bool) -> String {
        let Self { mark, stage, name, rest } = self;
        let style = stage.style();
        let room = width.saturating_sub(4);
        let column = column.min(room / 2);
        let name = cut(name, column);
        let rest = cut(&printable(rest), room.saturating_sub(column + 2));
        // The padding is not styled like the name.
        let gap = " ".repeat(column.saturating_sub(name.chars().count()) + 2);
        if colour {
            format!("{style}{mark}{style:#} {STRONG}{name}{STRONG:#}{gap}{FAINT}{rest}{FAINT:#}")
        } else {
            format!("{mark} {name}{gap}{rest}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, rest: &str) -> Line {
        Line { mark: '✓', stage: Stage::Ready, name: name.to_owned(), rest: rest.to_owned() }
    }

    #[test]
    fn names_are_aligned_and_long_texts_end_with_an_ellipsis() {
        assert_eq!(line("a", "4 tools").shown(5, 40, false), "✓ a      4 tools");
        assert_eq!(line("files", "4 tools").shown(5, 40, false), "✓ files  4 tools");
        assert_eq!(line("a", "a long reason").shown(5, 20, false), "✓ a      a long r…");
        assert_eq!(line("a-long-name", "x").shown(5, 20, false), "✓ a-lo…  x");
    }

    #[test]
    fn if_not_all_lines_fit_unfinished_ones_come_first_and_all_are_counted() {
        let stages = [Stage::Ready, Stage::Failed, Stage::Ready, Stage::UnderWay, Stage::Ready];
        let lines: Vec<Line> =
            stages.into_iter().map(|stage| Line { stage, ..line("a", "") }).collect();
        let shown = |room| {
            let (lines, rest) = chosen(&lines, room);
            (lines.iter().map(|line| line.stage).collect::<Vec<_>>(), rest)
        };
        assert_eq!(shown(5), (stages.to_vec(), None));
        let words = Some("  3 of 5 ready, 1 not available".to_owned());
        assert_eq!(shown(3), (vec![Stage::UnderWay, Stage::Failed], words.clone()));
        assert_eq!(shown(1), (vec![], words));
    }

    #[test]
    fn a_line_never_takes_more_than_one_line_of_the_terminal() {
        for width in 8..60 {
            let shown =
                line("a-rather-long-name", "and a rather long reason").shown(18, width, false);
            assert!(shown.chars().count() <= width, "{width}: {shown}");
        }
    }
}
