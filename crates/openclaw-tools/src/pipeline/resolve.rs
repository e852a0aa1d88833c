//! Resolves names to tools.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::refusal::Refusal;
use crate::outcome::{RefusedBy, ToolFailure};
use crate::source::{Tool, ToolSource};

/// Maximum length of an unknown name in messages: models may invent long ones.
const MAX_NAME: usize = 64;

/// The first step of a call. Every [`ToolSource`] implements it; callers that must wait for a
/// server first, or refuse for reasons of their own, use another implementation.
pub trait Resolve: Send + Sync {
    /// Resolves a name.
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a>;
}

/// The result of resolving a name, possibly pending.
pub enum Resolving<'a> {
    /// Resolved immediately.
    Now(Result<Arc<dyn Tool>, Refusal>),
    /// Resolved by a future.
    Later(BoxFuture<'a, Result<Arc<dyn Tool>, Refusal>>),
}

impl<S: ToolSource + ?Sized> Resolve for S {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        Resolving::Now(self.find(name).ok_or_else(|| unknown(name, "")))
    }
}

/// Creates the refusal for an unknown tool, with an optional hint.
pub fn unknown(name: &str, hint: &str) -> Refusal {
    let name: String = name.chars().take(MAX_NAME).filter(char::is_ascii_graphic).collect();
    let words = format!("Unknown tool '{name}'.{hint}");
    Refusal::new(ToolFailure::Denied, words).by(RefusedBy::UnknownTool)
}

/// Resolves every name to one tool.
#[derive(Debug, Clone)]
pub struct FixedTool(pub Arc<dyn Tool>);

impl Resolve for FixedTool {
    fn resolve<'a>(&'a self, _: &'a str) -> Resolving<'a> {
        Resolving::Now(Ok(Arc::clone(&self.0)))
    }
}

/// Resolves every name with a future.
pub struct AsyncLookup<F>(pub F);

impl<F, Fut> Resolve for AsyncLookup<F>
where
    F: Fn() -> Fut + Send + Sync,
    Fut: Future<Output = Result<Arc<dyn Tool>, Refusal>> + Send,
{
    fn resolve<'a>(&'a self, _: &'a str) -> Resolving<'a> {
        Resolving::Later(Box::pin(async move { (self.0)().await }))
    }
}

/// Refuses every call: for a call that is refused before it is resolved, but is still logged.
pub struct RefuseCall<F>(pub F);

impl<F: Fn() -> Refusal + Send + Sync> Resolve for RefuseCall<F> {
    fn resolve<'a>(&'a self, _: &'a str) -> Resolving<'a> {
        Resolving::Now(Err((self.0)()))
    }
}
