//! The keys of conversations: `agent:ID:NAME`, or any other name, or `main` for short.

/// An agent's main conversation, for short.
pub const MAIN: &str = "main";

/// The key of an agent's main conversation.
#[must_use]
pub fn main_of(agent: &str) -> String {
    format!("agent:{agent}:{MAIN}")
}

/// The key that is meant: `main` is short for the main conversation of this agent, all others are what
/// they are.
#[must_use]
pub fn whole(key: &str, agent: &str) -> String {
    if key == MAIN { main_of(agent) } else { key.to_owned() }
}

/// The agent that a key names, as in `agent:ID:NAME`.
#[must_use]
pub fn agent_of(key: &str) -> Option<&str> {
    let (agent, name) = key.strip_prefix("agent:")?.split_once(':')?;
    (!agent.is_empty() && !name.is_empty()).then_some(agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn main_is_short_for_an_agent_s_main_conversation_and_nothing_else_is_short() {
        assert_eq!(whole("main", "work"), "agent:work:main");
        for key in ["agent:other:main", "holidays", "Main", "agent:main", ""] {
            assert_eq!(whole(key, "work"), key);
        }
    }

    #[test]
    fn a_key_names_an_agent_only_in_its_full_form() {
        assert_eq!(agent_of("agent:work:a:b"), Some("work"));
        for key in ["main", "agent:work", "agent:work:", "agent::main"] {
            assert_eq!(agent_of(key), None, "{key}");
        }
    }
}
