//! Whether an agent may read a resource or get a prompt of a server (B8, B9, B14, B15): the rules for
//! the server's tools apply.

use openclaw_config::ApprovalPolicy as Rule;
use openclaw_tools::{ApprovalRule, Decision};

use crate::catalogue::member::FleetMember;
use crate::catalogue::naming::RESOURCE_TOOL;

/// The name of all prompts of a server in its allow and deny lists.
const PROMPTS: &str = "mcp_prompts";

impl FleetMember {
    /// The approval rule for the server.
    pub(crate) fn rule(&self) -> ApprovalRule {
        match self.options.approval {
            Rule::Auto => ApprovalRule::Auto,
            Rule::Always => ApprovalRule::Always,
            Rule::Never => ApprovalRule::Never,
        }
    }

    /// Whether a resource may be read. The lists of the server may name the tool for resources, or
    /// the URI. A resource that the configuration adds to the context is allowed.
    pub(crate) fn decide_resource(&self, uri: &str) -> Decision {
        if self.is_configured(uri) {
            return Decision::Allowed;
        }
        self.policy.decide_any(&[RESOURCE_TOOL, uri], &[])
    }

    /// Whether reading a resource needs an approval: a URI that the server has not listed may be
    /// invented, to send data to the server.
    pub(crate) fn resource_rule(&self, uri: &str) -> ApprovalRule {
        let inventory = self.server.cache().inventory();
        let is_listed = inventory.resources.iter().any(|resource| resource.uri == uri)
            || inventory.skill_of(uri).is_some_and(|skill| skill.files().any(|file| file == uri));
        if is_listed || self.is_configured(uri) { self.rule() } else { ApprovalRule::Unlisted }
    }

    /// Like [`resource_rule`](Self::resource_rule), for a client of another program: what it reads is
    /// chosen by the program or its user, so a URI that fits a template of the server counts as
    /// listed.
    pub(crate) fn relayed_resource_rule(&self, uri: &str) -> ApprovalRule {
        let inventory = self.server.cache().inventory();
        let fits_one = inventory.templates.iter().any(|it| fits(&it.uri_template, uri));
        if fits_one { self.rule() } else { self.resource_rule(uri) }
    }

    /// Whether a prompt may be used.
    pub(crate) fn decide_prompt(&self, prompt: &str) -> Decision {
        self.policy.decide_any(&[PROMPTS, prompt], &[])
    }

    fn is_configured(&self, uri: &str) -> bool {
        self.options.resources.iter().any(|configured| configured.as_str() == uri)
    }
}

/// Whether a URI begins and ends as a template does, outside its expressions.
pub fn fits(template: &str, uri: &str) -> bool {
    let (Some(start), Some(end)) = (template.find('{'), template.rfind('}')) else {
        return template == uri;
    };
    let before = &template[..start];
    let after = &template[end + 1..];
    uri.strip_prefix(before).is_some_and(|rest| rest.ends_with(after))
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_uri_fits_a_template_that_begins_and_ends_like_it() {
        for (template, uri, is_fitting) in [
            ("a://{id}/data", "a://7/data", true),
            ("a://{id}/data", "a://7/other", false),
            ("a://{x}/{y}", "a://1/2", true),
            ("a://{id}", "b://1", false),
            ("a://fixed", "a://fixed", true),
            ("a://fixed", "a://fixed2", false),
            ("}{", "}{", true),
        ] {
            assert_eq!(fits(template, uri), is_fitting, "{template} {uri}");
        }
    }
}
