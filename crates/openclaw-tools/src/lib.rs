//! The interface between agents and tools: names, descriptions, outcomes, and permissions.
//!
//! Agents know tools only through this crate. Whether a tool comes from an MCP server, a client of
//! the gateway or the program itself is hidden from them.

pub mod appended;
mod approval;
mod arguments;
pub mod audit;
pub mod clock;
mod context;
pub mod decimal;
mod grant;
mod media;
mod metrics;
mod name;
#[cfg(feature = "native")]
pub mod native;
mod outcome;
pub mod pipeline;
mod policy;
mod progress;
mod question;
pub mod schema;
pub mod search;
mod source;
mod spec;

pub use approval::{
    ApprovalAnswer, ApprovalContext, ApprovalExtent, ApprovalNeed, ApprovalReason, ApprovalRequest,
    ApprovalRule, Approver, BadFingerprint, ChangeTooLarge, Fallback, NoApprover, PermissionMode,
    Pin, ToolFingerprint,
};
pub use arguments::{Arguments, Given};
pub use context::{Call, CallClient, CallContext, CallOptions, Consent, Relay};
pub use grant::{AlwaysOption, GrantRule};
pub use media::{MediaKind, NotPassed, check_media, image_type};
pub use name::{BadToolName, ToolName};
pub use openclaw_net::address;
pub use outcome::{
    Blob, Content, OutcomeDetails, RawReply, RefusedBy, ResourceLink, ToolFailure, ToolOutcome,
};
pub use pipeline::Pipeline;
pub use policy::{BadPattern, Decision, Policy, Rules};
pub use progress::{Progress, ProgressWatcher};
pub use source::{
    AuditName, CallLane, Executed, NoTools, OnExecuted, Ready, StartedCall, Tool, ToolCall,
    ToolSource, Toolbox,
};
pub use spec::{ToolEffect, ToolSpec};
