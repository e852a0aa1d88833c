//! Tool policies: allow and deny lists of glob patterns on tool names (B8).

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::name::ToolName;

/// An allow list and a deny list, with their place in the configuration.
#[derive(Debug, Clone, Default)]
pub struct Rules<'a> {
    /// Place in the configuration, for messages: `gateway.tools`.
    pub place: &'a str,
    /// Only these tools are allowed, if given.
    pub allow: Option<&'a [String]>,
    /// These tools are denied.
    pub deny: &'a [String],
}

/// An invalid glob pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid pattern `{pattern}` in `{place}`: {cause}")]
pub struct BadPattern {
    pattern: String,
    place: String,
    cause: String,
}

/// Whether a tool may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    Allowed,
    /// It may not.
    Denied {
        /// The rule that denies it.
        by: String,
    },
}

/// Several layers of lists that must all agree. Deny takes precedence over allow.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    layers: Vec<Layer>,
}

#[derive(Debug, Clone)]
struct Layer {
    place: String,
    allow: Option<GlobSet>,
    deny: GlobSet,
}

impl Policy {
    /// Compiles the lists.
    ///
    /// # Errors
    /// If a pattern is invalid.
    pub fn new<'a>(rules: impl IntoIterator<Item = Rules<'a>>) -> Result<Self, BadPattern> {
        let compile = |rules: Rules<'a>| {
            Ok(Layer {
                allow: rules.allow.map(|allow| globs(allow, rules.place)).transpose()?,
                deny: globs(rules.deny, rules.place)?,
                place: rules.place.to_owned(),
            })
        };
        let layers = rules.into_iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Self { layers })
    }

    /// Returns a policy that allows no tool: for when there should be rules, but they cannot be
    /// loaded.
    pub fn nothing() -> Self {
        let nobody = Layer {
            place: "tools".to_owned(),
            allow: Some(GlobSet::empty()),
            deny: GlobSet::empty(),
        };
        Self { layers: vec![nobody] }
    }

    /// Decides whether a tool may be used. Deny takes precedence over allow, in whatever layer it
    /// is.
    ///
    /// ```
    /// use openclaw_tools::{Decision, Policy, Rules, ToolName};
    ///
    /// let allow = ["mcp_fs_*".to_owned()];
    /// let deny = ["*_write*".to_owned()];
    /// let policy = Policy::new([
    ///     Rules { place: "tools", allow: Some(&allow), deny: &[] },
    ///     Rules { place: "gateway.tools", allow: None, deny: &deny },
    /// ])?;
    /// assert_eq!(policy.decide(&ToolName::new("mcp_fs_read")?), Decision::Allowed);
    /// let denied = Decision::Denied { by: "gateway.tools.deny".to_owned() };
    /// assert_eq!(policy.decide(&ToolName::new("mcp_fs_write_file")?), denied);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decide(&self, name: &ToolName) -> Decision {
        self.decide_any(&[name.as_str()], &[])
    }

    /// Like [`decide`](Self::decide), for a tool with several names: a pattern may match any of
    /// them. Names in `known_as` count for deny patterns only.
    pub fn decide_any(&self, names: &[&str], known_as: &[&str]) -> Decision {
        let matches = |globs: &GlobSet| names.iter().any(|name| globs.is_match(name));
        // Most lists are empty, and even an empty one would split each name.
        let denies = |globs: &GlobSet| {
            !globs.is_empty()
                && (matches(globs) || known_as.iter().any(|name| globs.is_match(name)))
        };
        let denying = self.layers.iter().find(|layer| denies(&layer.deny));
        if let Some(layer) = denying {
            return Decision::Denied { by: format!("{}.deny", layer.place) };
        }
        let allows = |layer: &Layer| layer.allow.as_ref().is_none_or(matches);
        match self.layers.iter().find(|layer| !allows(layer)) {
            Some(layer) => Decision::Denied { by: format!("{}.allow", layer.place) },
            None => Decision::Allowed,
        }
    }
}

fn globs(patterns: &[String], place: &str) -> Result<GlobSet, BadPattern> {
    let bad = |pattern: &str, error: &globset::Error| BadPattern {
        pattern: pattern.to_owned(),
        place: place.to_owned(),
        cause: error.kind().to_string(),
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(pattern).map_err(|error| bad(pattern, &error))?);
    }
    set.build().map_err(|error| bad(&patterns.join(", "), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Place, allow, deny.
    type Lists<'a> = (&'a str, Option<&'a [&'a str]>, &'a [&'a str]);

    fn decide(rules: &[Lists<'_>], name: &str) -> Decision {
        let owned = |list: &[&str]| list.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
        let owned: Vec<_> = rules
            .iter()
            .map(|(place, allow, deny)| (place, allow.map(owned), owned(deny)))
            .collect();
        let rules =
            owned.iter().map(|(place, allow, deny)| Rules { place, allow: allow.as_deref(), deny });
        Policy::new(rules).unwrap().decide(&ToolName::new(name).unwrap())
    }

    fn denied(by: &str) -> Decision {
        Decision::Denied { by: by.to_owned() }
    }

    #[test]
    fn without_rules_everything_is_allowed() {
        assert_eq!(decide(&[], "anything"), Decision::Allowed);
        assert_eq!(decide(&[("tools", None, &[])], "anything"), Decision::Allowed);
    }

    #[test]
    fn deny_beats_allow_in_whatever_layer_it_stands() {
        let rules: &[Lists<'_>] = &[("agent", Some(&["*"]), &[]), ("tools", None, &["exec"])];
        assert_eq!(decide(rules, "exec"), denied("tools.deny"));
        assert_eq!(decide(rules, "read"), Decision::Allowed);
    }

    #[test]
    fn every_allow_list_must_agree_and_an_empty_one_allows_nothing() {
        let rules: &[Lists<'_>] =
            &[("tools", Some(&["mcp_*"]), &[]), ("agent", Some(&["*_read"]), &[])];
        assert_eq!(decide(rules, "mcp_fs_read"), Decision::Allowed);
        assert_eq!(decide(rules, "mcp_fs_write"), denied("agent.allow"));
        assert_eq!(decide(&[("tools", Some(&[]), &[])], "a"), denied("tools.allow"));
    }

    #[test]
    fn a_policy_of_nothing_allows_nothing() {
        let name = ToolName::new("anything").unwrap();
        assert_eq!(Policy::nothing().decide(&name), denied("tools.allow"));
    }

    #[test]
    fn an_invalid_pattern_is_reported_with_its_place() {
        let patterns = ["a[".to_owned()];
        let rules = Rules { place: "tools", allow: None, deny: &patterns };
        let error = Policy::new([rules]).unwrap_err().to_string();
        assert!(error.contains("`a[` in `tools`"), "{error}");
    }
}
