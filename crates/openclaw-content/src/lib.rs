//! Text carries where it came from: it is [ours, the user's, or from outside](Origin), from the tool that
//! returned it to the request that a model is sent. What comes from outside is [`Untrusted`] until it is a
//! [`Text`] with its [`Source`]; [`render`] is the one place where such text is put inside a boundary that
//! says where it comes from and that it is data, with every look-alike of that boundary and every control
//! token of a chat template made harmless. [`inspect`] notes and logs what is suspicious in it.
//!
//! There is one way for all sources, and it is linear in the length of the text, whatever the text.

mod automaton;
mod boundary;
mod finding;
mod fold;
mod fragments;
mod inspect;
mod label;
mod openings;
mod patterns;
mod prefilter;
mod report;
mod sanitize;
mod scan;
mod source;
mod spelling;
mod stored;
mod text;
mod untrusted;

pub use boundary::{Boundary, NoRandomness};
pub use finding::{Finding, Findings, Suspicion};
pub use inspect::{inspect, label};
pub use label::{clean_line, is_clean_line};
pub use sanitize::{Sanitized, sanitize};
pub use source::Source;
pub use stored::{StoredText, Unlabelled};
pub use text::{Origin, Outside, Text, render};
pub use untrusted::Untrusted;
