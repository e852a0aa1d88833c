//! The person at the terminal: servers' questions are shown on stderr and answered on stdin (T11).

use std::io::Write as _;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use openclaw_mcp::client::{Answer, Person, Question, Wanted};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::progress::Screen;
use crate::commands::mcp::form::{Field, Filled};
use crate::commands::talk::Lines;
use crate::output::{FAINT, STRONG, printable};

/// How often somebody may try to fill in one field.
const MAX_TRIES: usize = 5;

/// Somebody at a terminal. A clone is the same.
#[derive(Clone)]
pub(in crate::commands::mcp) struct Terminal {
    screen: Screen,
    /// What is typed, once somebody was asked; held for as long as a question takes.
    typed: Arc<Mutex<Option<Lines>>>,
}

/// Lines stay away while this lives.
struct Asking<'a>(&'a Screen);

impl<'a> Asking<'a> {
    fn begin(screen: &'a Screen) -> Self {
        screen.begin_asking();
        Self(screen)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.end_asking();
    }
}

impl Terminal {
    pub(super) fn new(screen: Screen) -> Self {
        Self { screen, typed: Arc::default() }
    }

    /// A question that is answered with yes or no; no answer means no.
    pub(in crate::commands::mcp) async fn confirm(&self, question: &str) -> bool {
        let mut typed = self.typed.lock().await;
        let _asking = Asking::begin(&self.screen);
        let answer = answer_to(&format!("{question} [y/N] "), &mut typed).await;
        answer.is_some_and(|answer| is_yes(&answer))
    }

    async fn answer(&self, question: Question) -> Answer {
        // One question at a time: two servers may ask at once.
        let mut typed = self.typed.lock().await;
        let _asking = Asking::begin(&self.screen);
        let (server, message) = (printable(&question.server), printable(&question.message));
        say(&format!("\n{STRONG}{server}{STRONG:#} asks: {message}\n"));
        match question.wanted {
            Wanted::Visit(url) => visit(&url, &mut typed).await,
            Wanted::Form(schema) => fill_in(&schema, &mut typed).await,
        }
    }
}

impl Person for Terminal {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(self.answer(question))
    }
}

/// Nothing is opened, and nothing is looked up: the person sees the whole address and decides.
async fn visit(url: &str, typed: &mut Option<Lines>) -> Answer {
    say(&format!(
        "  It wants you to open this address in a browser:\n\n    {}\n\n",
        printable(url)
    ));
    let question = "Open it yourself if you trust it. Tell the server that you agree? [y/N] ";
    match answer_to(question, typed).await {
        None => Answer::Cancel,
        Some(answer) if is_yes(&answer) => Answer::Accept(None),
        Some(_) => Answer::Decline,
    }
}

async fn fill_in(schema: &Value, typed: &mut Option<Lines>) -> Answer {
    let fields = Field::all(schema);
    let how = "Enter alone means the default, or no. Do not give away passwords here.";
    say(&format!("  {FAINT}{how}{FAINT:#}\n"));
    let mut values = Map::new();
    for field in &fields {
        match one_field(field, typed).await {
            Ok(Some(value)) => drop(values.insert(field.name.clone(), value)),
            Ok(None) => {}
            Err(answer) => return answer,
        }
    }
    if fields.is_empty() {
        return match answer_to("Agree? [y/N] ", typed).await {
            Some(answer) if is_yes(&answer) => Answer::Accept(Some(Value::Object(values))),
            Some(_) => Answer::Decline,
            None => Answer::Cancel,
        };
    }
    Answer::Accept(Some(Value::Object(values)))
}

async fn one_field(field: &Field, typed: &mut Option<Lines>) -> Result<Option<Value>, Answer> {
    for _ in 0..MAX_TRIES {
        let question = format!("  {}: ", field.question());
        let line = answer_to(&printable(&question), typed).await;
        let Some(line) = line else { return Err(Answer::Cancel) };
        match field.read(line.trim()) {
            Filled::Value(value) => return Ok(Some(value)),
            Filled::LeftOut => return Ok(None),
            Filled::Declined => return Err(Answer::Decline),
            Filled::Wrong(why) => say(&format!("    {}\n", printable(&why))),
        }
    }
    Err(Answer::Cancel)
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

fn say(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}

/// Asks, and waits for the next line that is typed; none when the input ends. What was typed before the
/// question is not an answer to it. Safe to cancel: a line that comes too late is dropped then.
async fn answer_to(question: &str, typed: &mut Option<Lines>) -> Option<String> {
    let typed = typed.get_or_insert_with(Lines::of_stdin);
    // Before the question is shown: whoever answers at once must not be overheard.
    typed.forget();
    say(question);
    typed.next().await.ok().flatten()
}
