//! The lists of a server (T9).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{Connection, RemoteEnd};
use crate::listing::{
    self, Dropped, ListedEntry, ListedSkill, ListedTemplate, ListedTool, Listing, TaskSupport,
};
use crate::wire::param_headers;
use crate::wire::{CallError, TimeLimits, redacted};

/// The result of `skills/get`.
#[derive(Deserialize)]
struct GetSkill<'a> {
    #[serde(borrow)]
    skill: &'a RawValue,
}

impl Connection {
    /// Lists the server's tools.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn list_tools(&self, limits: TimeLimits) -> Result<Listing<ListedTool>, CallError> {
        let mut listing = match listing::tools(&self.lane, self.meta_object(), limits).await {
            // The server does not declare tools.
            Err(CallError::Rpc(_) | CallError::Unreadable { .. }) if !self.about.offers.tools => {
                return Ok(Listing::default());
            }
            listed => listed?,
        };
        if !self.about.offers.tasks {
            listing.keep(|tool| match tool.task_support {
                TaskSupport::Required => {
                    let reason = "it runs only as a task, which the server does not declare";
                    Err(Dropped::new(&tool.name, reason))
                }
                TaskSupport::Optional | TaskSupport::Forbidden | TaskSupport::Other => Ok(()),
            });
        }
        let tells_headers = matches!(self.far_end, RemoteEnd::Remote { .. }) && self.meta.is_some();
        if tells_headers {
            listing.keep(|tool| match param_headers::of_schema(&tool.input_schema) {
                Ok(_) => Ok(()),
                Err(reason) => Err(Dropped::new(&tool.name, reason)),
            });
        }
        Ok(listing)
    }

    /// Lists the server's resources, prompts or skills. None of the files of a skill is read (SEP-2640
    /// forbids it).
    ///
    /// # Errors
    /// If the request fails.
    pub async fn list<T: ListedEntry>(&self, limits: TimeLimits) -> Result<Listing<T>, CallError> {
        listing::list(&self.lane, self.meta_object(), limits).await
    }

    /// Lists the server's resource templates. Empty for the many servers that do not support them.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn list_templates(
        &self,
        limits: TimeLimits,
    ) -> Result<Listing<ListedTemplate>, CallError> {
        match self.list(limits).await {
            Err(CallError::Rpc(_) | CallError::Unreadable { .. }) => Ok(Listing::default()),
            listed => listed,
        }
    }

    /// Returns the skill with this URI, which the server need not list. `None` if it has no such
    /// skill, or the entry is invalid.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn skill(
        &self,
        uri: &str,
        limits: TimeLimits,
    ) -> Result<Option<ListedSkill>, CallError> {
        let params = BTreeMap::from([("uri", to_raw_value(uri).unwrap_or_default())]);
        let answer = match self.request("skills/get", params, limits).await {
            Err(CallError::Rpc(_)) => return Ok(None),
            answer => answer?,
        };
        let redactor = self.lane.redactor();
        let answer = redacted::message(answer.get(), redactor);
        let answer: Option<GetSkill<'_>> = serde_json::from_str(&answer).ok();
        let skill = answer
            .and_then(|answer| listing::read_safely::<ListedSkill>(answer.skill, redactor).ok());
        Ok(skill.filter(|skill| skill.uri == uri))
    }

    fn meta_object(&self) -> Option<&RawValue> {
        self.meta.as_ref().map(|meta| &*meta.object)
    }
}
