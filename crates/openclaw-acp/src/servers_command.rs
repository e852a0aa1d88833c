//! Commands about MCP servers: `/mcp …`.

/// A command about MCP servers. The gateway does not know those of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServersCommand {
    Servers,
    /// The tools of all servers, or of one.
    Tools(Option<String>),
    Status(String),
    /// Fetches the lists of all servers, or of one.
    Refresh(Option<String>),
    /// Another verb, with its first argument.
    Other(String),
}

impl ServersCommand {
    /// Parses a command, given without its slash.
    pub(crate) fn read(command: &str) -> Option<Self> {
        let words: Vec<&str> = command.split_whitespace().collect();
        let ["mcp", words @ ..] = words.as_slice() else { return None };
        let name = |name: &&str| (*name).to_owned();
        match words {
            [] | ["servers" | "list"] => Some(Self::Servers),
            ["tools", rest @ ..] if rest.len() < 2 => Some(Self::Tools(rest.first().map(name))),
            ["refresh", rest @ ..] if rest.len() < 2 => Some(Self::Refresh(rest.first().map(name))),
            ["servers" | "list" | "status", server] => Some(Self::Status(name(server))),
            [_, server, ..] => Some(Self::Other(name(server))),
            [_] => None,
        }
    }

    /// The server that it is about; `None` for all.
    pub(crate) fn server(&self) -> Option<&str> {
        match self {
            Self::Servers => None,
            Self::Tools(server) | Self::Refresh(server) => server.as_deref(),
            Self::Status(server) | Self::Other(server) => Some(server),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_about_servers_are_parsed() {
        let name = || "a".to_owned();
        for (command, expected) in [
            ("mcp", Some(ServersCommand::Servers)),
            ("mcp  servers", Some(ServersCommand::Servers)),
            ("mcp tools", Some(ServersCommand::Tools(None))),
            ("mcp tools a", Some(ServersCommand::Tools(Some(name())))),
            ("mcp status a", Some(ServersCommand::Status(name()))),
            ("mcp refresh", Some(ServersCommand::Refresh(None))),
            ("mcp login a --code x", Some(ServersCommand::Other(name()))),
            ("mcp help", None),
            ("help", None),
        ] {
            assert_eq!(ServersCommand::read(command), expected, "{command}");
        }
    }
}
