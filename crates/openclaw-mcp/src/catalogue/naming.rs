//! The tool names that a model sees (B1).
//!
//! Names are mapped to tools by a table, never parsed. A name depends only on the tool's identity
//! and on whether another tool claims the same name, not on the order of the servers.

use std::collections::{HashMap, HashSet};

use data_encoding::HEXLOWER;
use openclaw_tools::ToolName;
use sha2::{Digest as _, Sha256};

use crate::catalogue::claims::NameClaims;

/// The longest name that model providers accept.
const MAX_LENGTH: usize = 64;
/// Hexadecimal digits of a hash in a name, and the separator before it.
const HASH_DIGITS: usize = 8;

/// How many salts are tried if a hashed name is taken.
const MAX_TRIES: u8 = 100;
/// The tool that reads resources. Tools of servers cannot have its name.
pub const RESOURCE_TOOL: &str = "mcp_resources";

/// The identity of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RawTool<'a> {
    /// The server's name in the configuration.
    pub server: &'a str,
    /// The prefix for the server in names: its name, or its `toolPrefix`.
    pub prefix: &'a str,
    /// The server's name for the tool.
    pub tool: &'a str,
}

/// The name of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedName {
    /// The name that a model sees.
    pub name: ToolName,
    /// The name from the template. Another one if the tool has a hash in its name.
    pub plain: String,
}

/// Assigns a name to each tool. The template contains `{tool}` and usually `{server}`.
///
/// Invalid characters become `_`. A name that is too long, or claimed by several tools, gets a
/// short hash of the tool's identity. All claimants get one: if the first kept the plain name,
/// another server could take that name over by coming first. `claims` has those of earlier times: a
/// name that two servers have claimed stays without an owner when one of them drops it.
///
/// ```
/// use openclaw_mcp::catalogue::claims::NameClaims;
/// use openclaw_mcp::catalogue::naming::{RawTool, names};
///
/// let read = RawTool { server: "my.files", prefix: "my.files", tool: "read" };
/// let names = names("mcp_{server}_{tool}", [read], &NameClaims::default());
/// assert_eq!(names[&read].name.as_str(), "mcp_my_files_read");
/// ```
pub fn names<'a>(
    template: &str,
    tools: impl IntoIterator<Item = RawTool<'a>>,
    claims: &NameClaims,
) -> HashMap<RawTool<'a>, AssignedName> {
    let tools = tools.into_iter();
    let mut by_name: HashMap<String, Vec<RawTool<'a>>> =
        HashMap::with_capacity(tools.size_hint().0);
    for tool in tools {
        let plain = plain(template, tool);
        claims.claim(&plain, tool.server);
        let claimants = by_name.entry(plain).or_default();
        if !claimants.contains(&tool) {
            claimants.push(tool);
        }
    }
    let mut names = HashMap::with_capacity(by_name.len());
    let mut contested = Vec::new();
    for (plain, mut claimants) in by_name {
        let is_free = plain != RESOURCE_TOOL && !claims.is_contested(&plain, |_| true);
        match (claimants.as_slice(), ToolName::new(&plain)) {
            ([tool], Ok(name)) if is_free => {
                names.insert(*tool, AssignedName { name, plain });
            }
            _ => {
                claimants.sort();
                contested.push((plain, claimants));
            }
        }
    }
    if contested.is_empty() {
        return names;
    }
    // Sorted, so that the result does not depend on the order of the input.
    contested.sort();
    let mut taken: HashSet<ToolName> = names.values().map(|it| it.name.clone()).collect();
    for (plain, claimants) in contested {
        for tool in claimants {
            // Another tool may already have the hashed name, by chance or on purpose.
            let tries = (0..MAX_TRIES).map(|salt| hashed(&plain, tool, salt));
            let free = tries.filter_map(|name| ToolName::new(&name).ok());
            if let Some(name) = free.into_iter().find(|name| !taken.contains(name)) {
                taken.insert(name.clone());
                names.insert(tool, AssignedName { name, plain: plain.clone() });
            }
        }
    }
    names
}

/// The name from the template, ignoring its length and collisions.
pub(crate) fn plain(template: &str, tool: RawTool<'_>) -> String {
    let size = template.len() + tool.prefix.len() + tool.tool.len();
    let mut name = String::with_capacity(size);
    let mut fill = |part: &str, value: &str| {
        name.push_str(part);
        name.extend(value.chars().map(|c| if ToolName::allows(c) { c } else { '_' }));
    };
    let mut rest = template;
    while let Some((part, after)) = rest.split_once('{') {
        // The configuration allows no other placeholder.
        let (value, after) = match after.strip_prefix("tool}") {
            Some(after) => (tool.tool, after),
            None => (tool.prefix, after.strip_prefix("server}").unwrap_or(after)),
        };
        fill(part, value);
        rest = after;
    }
    fill(rest, "");
    name
}

/// The name, truncated if necessary, with a hash of the identity.
fn hashed(plain: &str, tool: RawTool<'_>, salt: u8) -> String {
    let mut hash = Sha256::new();
    // A server name cannot contain a NUL byte, so the pair is encoded unambiguously.
    hash.update(tool.server.as_bytes());
    hash.update([0]);
    hash.update(tool.tool.as_bytes());
    if salt > 0 {
        hash.update([0, salt]);
    }
    let digest = hash.finalize();
    let digits = HEXLOWER.encode(&digest[..HASH_DIGITS / 2]);
    // A cleaned name is ASCII, so any index is a character boundary.
    let room = MAX_LENGTH - HASH_DIGITS - 1;
    format!("{}_{digits}", plain.get(..room).unwrap_or(plain))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEMPLATE: &str = "mcp_{server}_{tool}";

    fn names<'a>(
        template: &str,
        tools: impl IntoIterator<Item = RawTool<'a>>,
    ) -> HashMap<RawTool<'a>, AssignedName> {
        super::names(template, tools, &NameClaims::default())
    }

    fn raw<'a>(server: &'a str, tool: &'a str) -> RawTool<'a> {
        RawTool { server, prefix: server, tool }
    }

    #[test]
    fn other_characters_become_underscores_and_a_prefix_stands_for_the_server() {
        let tool = RawTool { server: "github", prefix: "gh", tool: "list.issues 🦀" };
        assert_eq!(names(TEMPLATE, [tool])[&tool].name.as_str(), "mcp_gh_list_issues__");
        assert_eq!(names("{server}__{tool}", [tool])[&tool].name.as_str(), "gh__list_issues__");
    }

    #[test]
    fn names_that_collide_all_get_a_hash_whatever_their_order() {
        let one = raw("a_b", "c");
        let two = raw("a", "b_c");
        let forth = names(TEMPLATE, [one, two]);
        let back = names(TEMPLATE, [two, one]);
        assert_eq!(forth, back);
        assert_ne!(forth[&one], forth[&two]);
        assert!(forth[&one].name.as_str().starts_with("mcp_a_b_c_"));
        assert_eq!(
            names(TEMPLATE, [one])[&one].name.as_str(),
            "mcp_a_b_c",
            "no collision, no hash"
        );
    }

    #[test]
    fn a_name_does_not_move_to_another_server_when_its_server_drops_it() {
        let claims = NameClaims::default();
        let named = |tools: &[RawTool<'static>]| {
            let names = super::names("{tool}", tools.iter().copied(), &claims);
            tools.iter().map(|tool| names[tool].name.to_string()).collect::<Vec<_>>()
        };
        let one = raw("one", "read");
        let two = raw("two", "read");
        assert_eq!(named(&[one]), ["read"]);
        let both = named(&[one, two]);
        assert!(both.iter().all(|name| name.starts_with("read_")), "{both:?}");
        assert_eq!(named(&[two]), both[1..]);
        claims.keep_only(|server| server == "two");
        assert_eq!(named(&[two]), ["read"], "it is the only one in the configuration");
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_and_stays_unique() {
        let long = "x".repeat(300);
        let other = format!("{long}y");
        let one = raw("s", &long);
        let two = raw("s", &other);
        let names = names(TEMPLATE, [one, two]);
        assert_eq!(names[&one].name.as_str().len(), 64);
        assert_ne!(names[&one], names[&two]);
    }

    #[test]
    fn a_tool_that_is_listed_twice_is_one_tool() {
        let tool = raw("s", "t");
        assert_eq!(names(TEMPLATE, [tool, tool])[&tool].name.as_str(), "mcp_s_t");
    }

    proptest! {
        #[test]
        fn every_tool_gets_a_name_of_its_own(tools in prop::collection::vec(("[a-c_]{1,3}", ".{0,70}"), 0..40)) {
            let tools: Vec<RawTool<'_>> = tools.iter().map(|(server, tool)| raw(server, tool)).collect();
            let names = names(TEMPLATE, tools.iter().copied());
            let distinct: std::collections::BTreeSet<_> = tools.iter().collect();
            prop_assert_eq!(names.len(), distinct.len());
            let used: std::collections::BTreeSet<_> = names.values().map(|it| &it.name).collect();
            prop_assert_eq!(used.len(), names.len());
        }
    }
}
