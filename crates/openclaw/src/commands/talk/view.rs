//! A turn on the screen: the streamed answer, and a few lines for every call.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use openclaw_content::{Untrusted, clean_line};
use serde_json::Value;
use tokio::time::sleep;

use super::answer::{TurnOutcome, TurnStatus};
use super::call::{ResultLines, ShownCall, cut_result};
use super::parts::ShownPart;
use crate::output::{Output, plural, printable, said};
use openclaw_terminal::markdown::{Markdown, wrap_plain};
use openclaw_terminal::pictures::Pictures;
use openclaw_terminal::style::{BAD, FAINT, STRONG, WARNING};

/// The maximum length of a notice.
const NOTICE_CHARS: usize = 400;
/// The maximum length of a tool's name.
const NAME_CHARS: usize = 80;

/// The steps of the animation of a temporary line, and how long each is shown.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const TICK: Duration = Duration::from_millis(120);
/// The duration of a turn is shown after this many seconds.
const SHORT: u64 = 3;

/// Formats calls as lines.
pub(crate) struct CallFormatter;

impl CallFormatter {
    /// Formats a finished call: its name, arguments and result.
    pub(crate) fn call(call: &ShownCall) -> Vec<String> {
        Self::with_head(call, &call.asked())
    }

    /// Like [`call`](Self::call), but without the arguments, which were shown before.
    pub(crate) fn result(call: &ShownCall) -> Vec<String> {
        Self::with_head(call, &clean_line(Untrusted::new(&call.name), NAME_CHARS))
    }

    fn with_head(call: &ShownCall, head: &str) -> Vec<String> {
        let took = call.took().map(|took| format!(" {FAINT}· {took}{FAINT:#}"));
        let took = took.unwrap_or_default();
        let ResultLines { beside, below, left_out } = cut_result(call.result(), call.is_error);
        let style = if call.is_error { BAD } else { FAINT };
        let mark = if call.is_error { "✗" } else { "⚙" };
        let beside = match (beside, call.is_error, call.failure.as_deref()) {
            (Some(text), true, _) => format!(" {BAD}failed: {text}{BAD:#}"),
            (None, true, Some(failure)) => {
                format!(" {BAD}failed ({}){BAD:#}", failure.replace('-', " "))
            }
            (None, true, None) => format!(" {BAD}failed{BAD:#}"),
            (Some(text), false, _) => format!(" → {text}"),
            (None, false, _) => String::new(),
        };
        let mut lines =
            vec![format!("{style}{mark}{style:#} {STRONG}{head}{STRONG:#}{beside}{took}")];
        lines.extend(below.iter().map(|line| format!("  {style}│{style:#} {line}")));
        if left_out > 0 {
            lines.push(format!("  {FAINT}│ … {}{FAINT:#}", plural(left_out, "more line")));
        }
        if let Some(file) = &call.kept_in {
            let file = clean_line(Untrusted::new(file), NOTICE_CHARS);
            lines.push(format!("  {FAINT}full result in {file}{FAINT:#}"));
        }
        let suspicions = call.suspicions();
        if !suspicions.is_empty() {
            let suspicions = suspicions.join(", ");
            lines.push(format!("  {WARNING}⚠ suspicious: {suspicions}{WARNING:#}"));
        }
        lines
    }
}

/// A turn on stdout.
pub(crate) struct TurnOutput {
    /// Whether stdout is a terminal, so that text is wrapped.
    is_terminal: bool,
    /// Whether lines can be erased.
    can_draw: bool,
    /// A temporary line, which will be erased.
    draft: Option<String>,
    /// The number of times that the temporary line was redrawn.
    ticks: usize,
    began: Instant,
    /// Whether the tokens that a turn used are shown.
    pub(crate) shows_usage: bool,
    /// How pictures of an answer are shown.
    pub(crate) pictures: Pictures,
    is_at_line_start: bool,
    /// The text since the last call, and the text right before that call.
    said: String,
    said_before: String,
    markdown: Markdown,
    /// Whether the answer is the result of a command: text that is not Markdown.
    pub(crate) is_plain: bool,
    /// The results with a number, for commands that refer to them.
    numbered: Option<Numbered>,
}

/// Results that are numbered as they are shown.
#[derive(Debug)]
struct Numbered {
    next: usize,
    results: Vec<ShownResult>,
}

/// A result that was shown with a number.
#[derive(Debug, Clone)]
pub(crate) enum ShownResult {
    /// A finished call.
    Call(Box<ShownCall>),
    /// A picture or audio of an answer, as received.
    Media(Value),
}

impl TurnOutput {
    pub(crate) fn new(can_draw: bool) -> Self {
        Self {
            is_terminal: std::io::stdout().is_terminal(),
            can_draw,
            draft: None,
            ticks: 0,
            began: Instant::now(),
            shows_usage: false,
            pictures: Pictures::default(),
            is_at_line_start: true,
            said: String::new(),
            said_before: String::new(),
            markdown: Markdown::default(),
            is_plain: false,
            numbered: None,
        }
    }

    /// Numbers the results, beginning with this number.
    pub(crate) fn number_from(&mut self, next: usize) {
        self.numbered = Some(Numbered { next, results: Vec::new() });
    }

    /// Removes the results that were numbered.
    pub(crate) fn take_results(&mut self) -> Vec<ShownResult> {
        self.numbered.as_mut().map(|it| std::mem::take(&mut it.results)).unwrap_or_default()
    }

    /// Returns the number of a result, to be shown after it.
    fn number(&mut self, result: ShownResult) -> String {
        let Some(numbered) = &mut self.numbered else { return String::new() };
        let number = numbered.next;
        numbered.next += 1;
        numbered.results.push(result);
        format!(" {FAINT}#{number}{FAINT:#}")
    }

    /// Shows a temporary line while something is running.
    pub(crate) fn draft(&mut self, text: &str, output: &mut Output) {
        if self.can_draw {
            self.new_line(output);
            self.draft = Some(text.to_owned());
            self.draw(output);
        }
    }

    /// Waits until a temporary line has to be redrawn. Cancel-safe.
    pub(crate) async fn due(&self) {
        match self.draft {
            Some(_) => sleep(TICK).await,
            None => std::future::pending().await,
        }
    }

    /// Redraws a temporary line, with the next step of the animation.
    pub(crate) fn tick(&mut self, output: &mut Output) {
        self.ticks = self.ticks.wrapping_add(1);
        self.draw(output);
    }

    fn draw(&mut self, output: &mut Output) {
        let Some(text) = &self.draft else { return };
        let took = match self.began.elapsed().as_secs() {
            0..SHORT => String::new(),
            seconds => format!(" · {seconds} s"),
        };
        let step = SPINNER[self.ticks % SPINNER.len()];
        // In ASCII, the `…` of a truncated line is two columns wider.
        let room = usize::from(output.width()).saturating_sub(5 + took.chars().count());
        let text = clean_line(Untrusted::new(text), room);
        // Overwritten in place: erasing it first would flicker.
        output.command("\r");
        output.prompt(&format!("{FAINT}{step} {text}{took}{FAINT:#}"));
        output.command("\u{1b}[K");
    }

    /// Shows that the model is thinking.
    pub(crate) fn thinking(&mut self, output: &mut Output) {
        if self.is_at_line_start && self.draft.is_none() {
            self.draft("thinking", output);
        }
    }

    /// Shows more of the answer.
    pub(crate) fn text(&mut self, text: &str, output: &mut Output) {
        self.said.push_str(text);
        let text = said(text);
        let shown = match self.is_terminal {
            true if self.is_plain => wrap_plain(&text.replace('\t', "    "), output.canvas()),
            true => self.markdown.push(&text.replace('\t', "    "), output.canvas()),
            false => text,
        };
        self.write(&shown, output);
    }

    fn write(&mut self, shown: &str, output: &mut Output) {
        if !shown.is_empty() {
            self.clear_draft(output);
            output.prompt(shown);
            self.is_at_line_start = shown.ends_with('\n');
        }
    }

    /// Replaces the answer so far.
    pub(crate) fn replaced(&mut self, text: &str, output: &mut Output) {
        if !self.said.is_empty() {
            self.note(&format!("{FAINT}(answering again){FAINT:#}"), output);
            self.said.clear();
        }
        self.markdown = Markdown::default();
        self.text(text, output);
    }

    pub(crate) fn called(&mut self, call: &ShownCall, output: &mut Output) {
        // Consecutive calls share the text before the first.
        if !self.said.is_empty() {
            self.said_before = std::mem::take(&mut self.said);
        }
        self.new_line(output);
        self.markdown = Markdown::default();
        self.runs(call, output);
    }

    /// Shows a running call, with its progress.
    pub(crate) fn runs(&mut self, call: &ShownCall, output: &mut Output) {
        let progress = call.progress.as_ref().map(|it| format!(" {}", it.words()));
        let words = format!("{}{}", call.asked(), progress.unwrap_or_default());
        // A line that is only updated keeps its place.
        match self.draft.as_mut() {
            Some(draft) if call.progress.is_some() => {
                *draft = words;
                self.draw(output);
            }
            _ => self.draft(&words, output),
        }
    }

    pub(crate) fn returned(&mut self, call: &ShownCall, output: &mut Output) {
        self.said.clear();
        let number = self.number(ShownResult::Call(Box::new(call.clone())));
        for (at, line) in CallFormatter::call(call).into_iter().enumerate() {
            let number = if at == 0 { number.as_str() } else { "" };
            self.line(&format!("{line}{number}"), output);
        }
    }

    pub(crate) fn notice(&mut self, text: &str, output: &mut Output) {
        let text = clean_line(Untrusted::new(text), NOTICE_CHARS);
        self.note(&format!("{FAINT}· {text}{FAINT:#}"), output);
    }

    /// Writes a note of our own. It goes to stderr if stdout is not interactive.
    pub(crate) fn note(&mut self, line: &str, output: &mut Output) {
        if self.can_draw {
            return self.line(line, output);
        }
        self.new_line(output);
        output.flush();
        output.aside(line);
    }

    /// Writes whole lines.
    pub(crate) fn lines(&mut self, lines: &[String], output: &mut Output) {
        lines.iter().for_each(|line| self.line(line, output));
    }

    /// Writes a whole line.
    pub(crate) fn line(&mut self, line: &str, output: &mut Output) {
        self.new_line(output);
        output.folded(line);
        output.flush();
    }

    /// Finishes the turn: shows the missing part of the answer, what it used, and the error.
    pub(crate) fn over(&mut self, answer: &TurnOutcome, output: &mut Output) {
        self.complete(answer, output);
        if answer.is_empty() {
            self.note(&format!("{FAINT}(the model returned an empty answer){FAINT:#}"), output);
        }
        if let Some(used) = answer.used().filter(|_| self.shows_usage) {
            self.note(&format!("{FAINT}· {used}{FAINT:#}"), output);
        }
        if let Some(trouble) = answer.trouble() {
            let style = if answer.ending == TurnStatus::Cancelled { FAINT } else { BAD };
            let trouble = printable(&trouble).into_owned();
            self.note(&format!("{style}✗ {trouble}{style:#}"), output);
        }
        output.flush();
    }

    /// Shows the missing part of the answer.
    pub(crate) fn complete(&mut self, answer: &TurnOutcome, output: &mut Output) {
        self.clear_draft(output);
        match MissingText::in_turn(&self.said, &self.said_before, answer) {
            MissingText::Nothing => {}
            MissingText::Rest(rest) => self.text(rest, output),
            MissingText::Much(whole) => {
                let words = "(parts of the answer were missed; in full:)";
                self.note(&format!("{FAINT}{words}{FAINT:#}"), output);
                self.text(whole, output);
            }
        }
        self.new_line(output);
        for value in answer.content.as_array().into_iter().flatten() {
            if let ShownPart::Media { mime_type, bytes } = ShownPart::of(value) {
                let mime_type = clean_line(Untrusted::new(&mime_type), 40);
                let number = self.number(ShownResult::Media(value.clone()));
                let data = value.get("data").and_then(Value::as_str).unwrap_or_default();
                let picture = self.pictures.sequence(&mime_type, data);
                if let Some(picture) = picture {
                    output.command(&picture);
                }
                let words = format!("[{mime_type}, about {bytes} bytes]");
                self.line(&format!("{FAINT}{words}{FAINT:#}{number}"), output);
            }
        }
    }

    /// Starts a new line unless the cursor is at the start of one.
    pub(crate) fn new_line(&mut self, output: &mut Output) {
        self.clear_draft(output);
        let rest = self.markdown.finish(output.canvas());
        self.write(&rest, output);
        if !self.is_at_line_start {
            output.line("");
            self.is_at_line_start = true;
        }
    }

    fn clear_draft(&mut self, output: &mut Output) {
        if self.draft.take().is_some() {
            output.command("\r\x1b[2K");
        }
    }
}

/// The part of an answer that was not streamed.
#[derive(Debug, PartialEq, Eq)]
enum MissingText<'a> {
    Nothing,
    /// The end of the answer.
    Rest(&'a str),
    /// The whole answer: the streamed text is not its beginning.
    Much(&'a str),
}

impl<'a> MissingText<'a> {
    /// If a turn ends during a call, its answer is the text before that, which is already shown.
    fn in_turn(said: &str, said_before: &str, answer: &'a TurnOutcome) -> Self {
        let is_announced = answer.text.trim_end() == said_before.trim_end();
        match answer.ending != TurnStatus::Done && said.is_empty() && is_announced {
            true => Self::Nothing,
            false => Self::of(said, &answer.text),
        }
    }

    fn of(heard: &str, whole: &'a str) -> Self {
        // Trailing line breaks make no difference.
        let (whole, bare) = (whole.trim_end(), heard.trim_end());
        match whole.strip_prefix(heard).or_else(|| whole.strip_prefix(bare)) {
            Some(rest) if !rest.trim().is_empty() => Self::Rest(rest),
            Some(_) => Self::Nothing,
            // The answer may also contain the text before the calls.
            None if whole.trim().is_empty() || whole.ends_with(bare) => Self::Nothing,
            None => Self::Much(whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_before_a_cancelled_call_is_not_shown_twice() {
        let answer =
            |ending| TurnOutcome { text: "Calling.".to_owned(), ..TurnOutcome::bare(ending) };
        let (cancelled, done) = (answer(TurnStatus::Cancelled), answer(TurnStatus::Done));
        let unheard = |said, answer| MissingText::in_turn(said, "Calling.\n", answer);
        assert_eq!(unheard("", &cancelled), MissingText::Nothing);
        assert_eq!(unheard("", &done), MissingText::Rest("Calling."));
        assert_eq!(unheard("Call", &cancelled), MissingText::Rest("ing."));
    }

    #[test]
    fn only_the_missing_part_of_an_answer_is_shown_at_the_end() {
        for (heard, whole) in
            [("All.", "All."), ("All.\n", "All.\n"), ("All.", "All.\n\n"), ("", " ")]
        {
            assert_eq!(
                MissingText::of(heard, whole),
                MissingText::Nothing,
                "{heard:?} of {whole:?}"
            );
        }
        assert_eq!(MissingText::of("5.", "I add. It is 5.\n"), MissingText::Nothing);
        assert_eq!(MissingText::of("It ", "It is 5.\n"), MissingText::Rest("is 5."));
        assert_eq!(MissingText::of("I", "It is 5."), MissingText::Rest("t is 5."));
        assert_eq!(MissingText::of("something", "else"), MissingText::Much("else"));
    }
}
