//! Parses the commands that follow `/mcp`.

use openclaw_protocol::Method;

/// The verbs, their arguments, and what they do.
pub(crate) const VERBS: [(&str, &str, &str); 9] = [
    ("servers", "", "List the servers and their state"),
    ("tools", "[SERVER]", "List the tools"),
    ("status", "SERVER", "Show the details of a server"),
    ("refresh", "[SERVER]", "Fetch the lists again; reconnect a failed server"),
    ("connect", "URL [--name NAME]", "Connect to a server until this program exits"),
    ("disconnect", "SERVER", "Disconnect a server until this program exits"),
    ("login", "SERVER [--code CODE]", "Log in to a server"),
    ("logout", "SERVER", "Log out of a server"),
    ("help", "", "Show this list"),
];

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verb {
    Servers,
    Tools {
        server: Option<String>,
    },
    Status {
        server: String,
    },
    Refresh {
        server: Option<String>,
    },
    Connect {
        url: String,
        name: Option<String>,
    },
    ConnectAgain {
        server: String,
    },
    Disconnect {
        server: String,
    },
    /// Begins a login, or finishes one with its code.
    Auth {
        server: String,
        code: Option<String>,
    },
    /// Whether a login is required, without its details.
    AuthState {
        server: String,
    },
    Logout {
        server: String,
    },
}

impl Verb {
    /// The method that it stands for: whoever may not call that may not do this.
    pub(crate) const fn method(&self) -> Method {
        match self {
            Self::Servers => Method::McpServers,
            Self::Tools { .. } => Method::McpTools,
            // The state of a server says whether a login is required, too.
            Self::Status { .. } | Self::AuthState { .. } => Method::McpStatus,
            Self::Refresh { .. } => Method::McpRefresh,
            Self::Connect { .. } | Self::ConnectAgain { .. } => Method::McpConnect,
            Self::Disconnect { .. } => Method::McpDisconnect,
            Self::Auth { .. } | Self::Logout { .. } => Method::McpAuth,
        }
    }

    /// Its name, as it is typed.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Servers => "servers",
            Self::Tools { .. } => "tools",
            Self::Status { .. } => "status",
            Self::AuthState { .. } => "auth",
            Self::Refresh { .. } => "refresh",
            Self::Connect { .. } | Self::ConnectAgain { .. } => "connect",
            Self::Disconnect { .. } => "disconnect",
            Self::Auth { .. } => "login",
            Self::Logout { .. } => "logout",
        }
    }
}

/// A parsed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) verb: Verb,
    pub(crate) json: bool,
}

impl Order {
    /// Parses what follows `/mcp`.
    ///
    /// # Errors
    /// Returns the text to show instead: an error, or the requested help.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let json = words.contains(&"--json");
        words.retain(|word| *word != "--json");
        let Some((verb, rest)) = words.split_first() else {
            return Ok(Self { verb: Verb::Servers, json });
        };
        let verb = match *verb {
            "help" | "--help" | "-h" => return Err(help()),
            "connect" => connect(rest)?,
            "auth" | "login" => auth(rest)?,
            verb => {
                let verb = plain(verb, rest)?;
                if let Some(flag) = rest.iter().find(|word| word.starts_with("--")) {
                    return Err(format!("error: unknown option `{flag}`\n\n{}", help()));
                }
                verb
            }
        };
        Ok(Self { verb, json })
    }
}

fn plain(verb: &str, rest: &[&str]) -> Result<Verb, String> {
    let one = || match rest {
        [] => Ok(None),
        [name] => Ok(Some((*name).to_owned())),
        _ => Err(format!("error: `/mcp {verb}` takes one server name\n\n{}", help())),
    };
    let missing = || format!("error: missing server name\nhint: use `/mcp {verb} SERVER`");
    let must = || one()?.ok_or_else(missing);
    Ok(match verb {
        "servers" | "list" => match one()? {
            None => Verb::Servers,
            Some(server) => Verb::Status { server },
        },
        "tools" => Verb::Tools { server: one()? },
        "status" => Verb::Status { server: must()? },
        "refresh" => Verb::Refresh { server: one()? },
        "disconnect" => Verb::Disconnect { server: must()? },
        "logout" => Verb::Logout { server: must()? },
        unknown => {
            let known: Vec<&str> = VERBS.iter().map(|(verb, ..)| *verb).collect();
            let unknown: String = unknown.chars().take(40).collect();
            let similar = openclaw_config::nearest(&unknown, &known);
            let hint = similar.map(|it| format!("\nhint: did you mean `/mcp {it}`?"));
            let hint = hint.unwrap_or_default();
            return Err(format!("error: unknown command `/mcp {unknown}`{hint}\n\n{}", help()));
        }
    })
}

/// Parses `login SERVER [--code CODE]`.
fn auth(rest: &[&str]) -> Result<Verb, String> {
    let usage = || wrong_arguments("/mcp login SERVER [--code CODE]");
    let (server, code) = match rest {
        [server] => (server, None),
        [server, "--code", code] => (server, Some(*code)),
        [server, code] => (server, Some(code.strip_prefix("--code=").ok_or_else(usage)?)),
        _ => return Err(usage()),
    };
    Ok(Verb::Auth { server: (*server).to_owned(), code: code.map(str::to_owned) })
}

/// Parses `connect URL [--name NAME]`, or the name of a known server.
fn connect(rest: &[&str]) -> Result<Verb, String> {
    let usage = || wrong_arguments("/mcp connect https://example.com/mcp [--name NAME]");
    let (mut target, mut name) = (None, None);
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let equals = word.strip_prefix("--name=");
        match (*word, equals) {
            (_, Some(given)) => name = Some(given.to_owned()),
            ("--name", _) => match words.next() {
                Some(given) => name = Some((*given).to_owned()),
                None => return Err(usage()),
            },
            (word, None) if word.starts_with("--") || target.is_some() => return Err(usage()),
            (word, None) => target = Some(word.to_owned()),
        }
    }
    match (target, name) {
        (None, _) => Err(usage()),
        // A URL may lack its scheme, which is reported.
        (Some(server), None) if !server.contains('/') => Ok(Verb::ConnectAgain { server }),
        (Some(url), name) => Ok(Verb::Connect { url, name }),
    }
}

fn wrong_arguments(usage: &str) -> String {
    format!("error: wrong arguments\nhint: use `{usage}`")
}

/// The help text.
pub(crate) fn help() -> String {
    let usage = |verb: &str, what: &str| format!("/mcp {verb} {what}").trim_end().to_owned();
    let column = VERBS.iter().map(|(verb, what, _)| usage(verb, what).len()).max().unwrap_or(0);
    let lines =
        VERBS.iter().map(|(verb, what, about)| format!("  {:column$}  {about}", usage(verb, what)));
    let lines: Vec<String> = lines.collect();
    format!("{}\n\n`--json` prints JSON.", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verb(text: &str) -> Verb {
        Order::read(text).unwrap().verb
    }

    #[test]
    fn commands_are_parsed() {
        let (url, name) = ("https://x.example/mcp".to_owned(), Some("x".to_owned()));
        assert_eq!(verb(""), Verb::Servers);
        assert_eq!(verb("  tools  "), Verb::Tools { server: None });
        assert_eq!(verb("status x"), Verb::Status { server: "x".to_owned() });
        assert_eq!(verb("connect x"), Verb::ConnectAgain { server: "x".to_owned() });
        let half = Verb::Connect { url: "x.example/mcp".to_owned(), name: None };
        assert_eq!(verb("connect x.example/mcp"), half);
        let connect = Verb::Connect { url: url.clone(), name };
        for text in ["--name x https://x.example/mcp", "https://x.example/mcp --name=x"] {
            assert_eq!(verb(&format!("connect {text}")), connect);
        }
        assert_eq!(verb(&format!("connect {url}")), Verb::Connect { url, name: None });
        assert!(Order::read("servers --json").unwrap().json);
    }

    #[test]
    fn invalid_commands_show_help() {
        for (text, expected) in [
            ("sorvers", "\nhint: did you mean `/mcp servers`?\n"),
            ("\u{1b}[2J", "error: unknown command"),
            ("status", "error: missing server name"),
            ("tools a b", "takes one server name"),
            ("tools --all", "error: unknown option `--all`"),
            ("connect", "hint: use `/mcp connect"),
            ("connect a b", "hint: use `/mcp connect"),
            ("connect https://x.example --name", "hint: use `/mcp connect"),
            ("login", "hint: use `/mcp login"),
            ("help", "/mcp disconnect SERVER"),
        ] {
            let words = Order::read(text).unwrap_err();
            assert!(words.contains(expected), "{text}: {words}");
        }
    }
}
