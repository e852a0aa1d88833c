//! Session keys: `agent:ID:NAME`, any other name, or the short form `main`.

/// Short key of an agent's main session.
pub const MAIN: &str = "main";

/// Returns the full key of an agent's main session.
#[must_use]
pub fn main_of(agent: &str) -> String {
    format!("agent:{agent}:{MAIN}")
}

/// Returns the full key of the session that a client gave this id.
#[must_use]
pub fn explicit(agent: &str, id: &str) -> String {
    format!("agent:{agent}:explicit:{id}")
}

/// Expands `main` to the full key of this agent's main session; other keys are returned unchanged.
#[must_use]
pub fn whole(key: &str, agent: &str) -> String {
    if key == MAIN { main_of(agent) } else { key.to_owned() }
}

/// Returns the agent in a key of the form `agent:ID:NAME`.
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
