//! Requests from a server, and their answers (T10, T11).
//!
//! Elicitations are passed to the user, or declined if there is none; the root is the agent's
//! workspace, if the server may know it; sampling requests are passed to the sampler. Log messages of a server go to the log
//! only. Changes of lists are counted for the owner of the lists.

#![expect(deprecated, reason = "older servers still ask for roots and sampling, and still log")]

mod application;
mod calls;
mod client_side;
mod elicitation;
mod handler;
mod input;
mod login;
mod users;

pub use application::{
    CallInProgress, Downstream, ElicitationAnswer, ElicitationKind, ElicitationRequest, Elicitor,
    Host, Sampler, SamplingRequest,
};
pub use client_side::{CallGuard, Changes, ClientSide};
pub use elicitation::{sanitized_elicitation, visitable};
pub use input::PATIENCE;
pub use users::Users;

/// Maximum length of a log or question message, in characters.
const LOG_CHARS: usize = 2_000;
