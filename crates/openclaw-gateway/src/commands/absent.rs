//! Commands of other front ends that do not exist here. They are answered with a sentence: sent to the
//! model, they would cost tokens and do something else.

/// A command that does not exist here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AbsentCommand {
    /// Its name, without the slash.
    pub(crate) name: &'static str,
    /// What does not exist, or what to use instead.
    reason: &'static str,
}

impl AbsentCommand {
    /// The answer.
    pub(crate) fn text(self) -> String {
        format!("`/{}` is not supported by this gateway: {}.", self.name, self.reason)
    }
}

const APPROVALS: &str =
    "which calls need an approval is configured; `openclaw approvals` shows what was approved";
const THINKING: &str = "models think as their provider is configured";
const SHOWN: &str = "the gateway sends everything, and the client decides what it shows";
const CONFIGURED: &str = "use `openclaw config`";
const EXPORT: &str = "use `openclaw sessions export`";
const PLUGINS: &str = "there are no plugins; tools are MCP servers, see `/mcp`";
const AGENTS: &str = "there are no subagents";
const CHANNELS: &str = "there are no channels and group chats";
const SKILLS: &str = "there is no library of skills";

/// The commands, by name.
const ABSENT: [(&str, &str); 57] = [
    ("acp", AGENTS),
    ("activation", CHANNELS),
    ("agents", "choose the agent in the client, or with its session key"),
    ("allowlist", APPROVALS),
    ("approve", "answer in the client that shows the question"),
    ("bash", "ask the agent to run the command"),
    ("btw", "ask in another session"),
    ("card", CHANNELS),
    ("clear", "`/reset` begins anew; what is shown is cleared by the client"),
    ("codex", PLUGINS),
    ("config", CONFIGURED),
    ("context", "`/usage` shows how full the context is"),
    ("dashboard", "there are no dashboards"),
    ("debug", CONFIGURED),
    ("diagnostics", "use `openclaw doctor`"),
    ("dreaming", PLUGINS),
    ("elev", APPROVALS),
    ("elevated", APPROVALS),
    ("exec", APPROVALS),
    ("export", EXPORT),
    ("export-session", EXPORT),
    ("export-trajectory", EXPORT),
    ("fast", "models have no fast mode"),
    ("goal", "there are no goals"),
    ("id", "`openclaw gateway token list` shows who has access"),
    ("learn", SKILLS),
    ("login", "keys of model providers are secrets of the configuration"),
    ("loop", "there are no scheduled messages"),
    ("openclaw", CONFIGURED),
    ("pair", "`openclaw gateway token` gives other devices access"),
    ("plugin", PLUGINS),
    ("plugins", PLUGINS),
    ("prose", PLUGINS),
    ("queue", "messages of a session are answered in the order in which they arrive"),
    ("reason", SHOWN),
    ("reasoning", SHOWN),
    ("redirect", "a running turn takes no messages; `/stop` ends it"),
    ("restart", "use `openclaw gateway restart`"),
    ("send", CHANNELS),
    ("session", CHANNELS),
    ("side", "ask in another session"),
    ("skill", SKILLS),
    ("steer", "a running turn takes no messages; `/stop` ends it"),
    ("subagents", AGENTS),
    ("t", THINKING),
    ("tasks", "there are no background tasks"),
    ("tell", "a running turn takes no messages; `/stop` ends it"),
    ("think", THINKING),
    ("thinking", THINKING),
    ("trace", SHOWN),
    ("trajectory", EXPORT),
    ("tts", "there is no speech"),
    ("update", "install the new version, then use `openclaw gateway restart`"),
    ("v", SHOWN),
    ("verbose", SHOWN),
    ("voice", "there is no speech"),
    ("whoami", "`openclaw gateway token list` shows who has access"),
];

/// Returns the command with this name. Some front ends write `_` for `-`.
pub(super) fn find(name: &str) -> Option<AbsentCommand> {
    let name = &name.replace('_', "-");
    let (name, reason) = ABSENT.iter().find(|(known, _)| *known == name)?;
    Some(AbsentCommand { name, reason })
}
