//! Text with its origin: it is [ours, the user's, or external](Origin), all the way from the tool that
//! returned it to the request to a model. External text is [`Untrusted`] until it is a [`Text`] with
//! its [`Source`]; [`render`] is the one place that wraps it in a boundary, which names the source
//! and marks the text as data. Look-alikes of the boundary are defused, and control tokens of chat
//! templates are removed. [`inspect`] finds and logs suspicious content.
//!
//! All sources are handled alike, in time linear in the length of the text, whatever the text.

mod automaton;
mod boundary;
mod clean;
mod excerpt;
mod finding;
mod fold;
mod fragments;
mod hazard;
mod inspect;
mod json;
mod label;
mod openings;
mod patterns;
mod prefilter;
mod question_text;
mod report;
mod sanitize;
mod scan;
mod shown_arguments;
mod source;
mod spelling;
mod stored;
mod text;
mod untrusted;

pub use boundary::{Boundary, NoRandomness};
pub use clean::{clean_json, clean_text, is_clean_text};
pub use excerpt::{clean_excerpt, excerpt, more_characters};
pub use finding::{Finding, Findings, Suspicion};
pub use hazard::{Hazard, hazard};
pub use inspect::{inspect, label};
pub use json::JsonRenderer;
pub use label::{clean_line, is_clean_line, printable, wrap_words};
pub use question_text::{QuestionText, QuestionTooLong};
pub use sanitize::{Sanitized, sanitize};
pub use shown_arguments::{ArgumentLines, ShownArguments, reveal_hidden};
pub use source::Source;
pub use stored::{StoredText, Unlabelled};
pub use text::{Origin, Outside, Text, render};
pub use untrusted::Untrusted;
