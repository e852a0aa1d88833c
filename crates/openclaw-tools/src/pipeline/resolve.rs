//! From a name to a tool.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::refusal::Refusal;
use crate::outcome::{Failure, Refused};
use crate::source::{Tool, ToolSource};

/// A name that a model has made up may be long.
const MAX_NAME: usize = 64;

/// The first step of a call. Every [`ToolSource`] has it; a caller that has to wait for a server first, or has reasons
/// of its own to refuse, brings another.
pub trait Resolve: Send + Sync {
    /// The tool that is meant by a name.
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a>;
}

/// A tool that is being looked up.
pub enum Resolving<'a> {
    /// It was found, or not.
    Now(Result<Arc<dyn Tool>, Refusal>),
    /// It takes time.
    Later(BoxFuture<'a, Result<Arc<dyn Tool>, Refusal>>),
}

impl<S: ToolSource + ?Sized> Resolve for S {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        Resolving::Now(self.find(name).ok_or_else(|| unknown(name, "")))
    }
}

/// There is no tool of this name; a hint may follow.
pub fn unknown(name: &str, hint: &str) -> Refusal {
    let name: String = name.chars().take(MAX_NAME).filter(char::is_ascii_graphic).collect();
    let words = format!("Unknown tool '{name}'.{hint}");
    Refusal::new(Failure::Denied, words).by(Refused::UnknownTool)
}

/// One tool, whatever the name.
#[derive(Debug, Clone)]
pub struct One(pub Arc<dyn Tool>);

impl Resolve for One {
    fn resolve<'a>(&'a self, _: &'a str) -> Resolving<'a> {
        Resolving::Now(Ok(Arc::clone(&self.0)))
    }
}

/// A tool that a future finds: the name does not matter.
pub struct Lookup<F>(pub F);

impl<F, Fut> Resolve for Lookup<F>
where
    F: Fn() -> Fut + Send + Sync,
    Fut: Future<Output = Result<Arc<dyn Tool>, Refusal>> + Send,
{
    fn resolve<'a>(&'a self, _: &'a str) -> Resolving<'a> {
        Resolving::Later(Box::pin(async move { (self.0)().await }))
    }
}

/// A call that is refused before anything is looked up: it is logged all the same.
pub struct NotMade<F>(pub F);

impl<F: Fn() -> Refusal + Send + Sync> Resolve for NotMade<F> {
    fn resolve<'a>(&'a self, _: &'a str) -> Resolving<'a> {
        Resolving::Now(Err((self.0)()))
    }
}
