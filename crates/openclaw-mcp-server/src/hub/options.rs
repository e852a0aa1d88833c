//! How a client sees the servers.

use url::form_urlencoded;

/// Maximum number of servers that a client may name.
const MAX_SERVERS: usize = 1_000;

/// How a client sees the servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubClientOptions {
    /// The agent whose servers are offered; `None` for the default agent.
    pub agent: Option<String>,
    /// The servers that are offered; all if empty.
    pub servers: Vec<String>,
    /// Whether names of tools and prompts begin with their server's name. With a single server,
    /// they don't.
    pub prefix: bool,
    /// Whether texts of servers get boundaries, as for the agent's model.
    pub wrap: bool,
    /// Whether two tools, one to search and one to call, are offered instead of all.
    pub search: bool,
    /// The client's name in the audit log, until it identifies itself.
    pub name: String,
}

impl Default for HubClientOptions {
    fn default() -> Self {
        Self {
            agent: None,
            servers: Vec::new(),
            prefix: true,
            wrap: true,
            search: false,
            name: "mcp client".to_owned(),
        }
    }
}

/// An invalid option in the query of a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadOption {
    /// The name is unknown.
    #[error("unknown option `{0}`; known: agent, server, prefix, wrap, tools")]
    Name(String),
    /// The value is invalid.
    #[error("invalid value of `{}`: {}", .0, expected(.0))]
    Value(&'static str),
}

/// The values of an option.
fn expected(name: &str) -> &'static str {
    match name {
        "server" => "too many servers",
        "tools" => "expected all or search",
        _ => "expected true or false",
    }
}

impl HubClientOptions {
    /// Parses the query of a URL, such as `agent=main&server=files&prefix=false&wrap=false&tools=search`.
    ///
    /// ```
    /// use openclaw_mcp_server::hub::HubClientOptions;
    ///
    /// let options = HubClientOptions::from_query("server=files&server=git&wrap=false")?;
    /// assert_eq!(options.servers, ["files", "git"]);
    /// assert!(!options.wrap && options.prefix);
    /// assert_eq!(HubClientOptions::from_query(&options.query())?, options);
    /// # Ok::<(), openclaw_mcp_server::hub::BadOption>(())
    /// ```
    ///
    /// # Errors
    /// If an option is unknown or invalid.
    pub fn from_query(query: &str) -> Result<Self, BadOption> {
        let mut options = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let flag = |name| match &*value {
                "true" => Ok(true),
                "false" => Ok(false),
                _ => Err(BadOption::Value(name)),
            };
            match &*name {
                "agent" => options.agent = Some(value.into_owned()),
                "server" if options.servers.len() < MAX_SERVERS => {
                    options.servers.push(value.into_owned());
                }
                "server" => return Err(BadOption::Value("server")),
                "prefix" => options.prefix = flag("prefix")?,
                "wrap" => options.wrap = flag("wrap")?,
                "tools" => {
                    options.search = match &*value {
                        "search" => true,
                        "all" => false,
                        _ => return Err(BadOption::Value("tools")),
                    }
                }
                _ => return Err(BadOption::Name(name.chars().take(40).collect())),
            }
        }
        Ok(options)
    }

    /// Returns the options as the query of a URL.
    pub fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(agent) = &self.agent {
            query.append_pair("agent", agent);
        }
        for server in &self.servers {
            query.append_pair("server", server);
        }
        for (name, flag) in [("prefix", self.prefix), ("wrap", self.wrap)] {
            if !flag {
                query.append_pair(name, "false");
            }
        }
        if self.search {
            query.append_pair("tools", "search");
        }
        query.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_a_query() {
        let options = HubClientOptions {
            agent: Some("a & b".to_owned()),
            servers: vec!["x=1".to_owned(), "ü".to_owned()],
            prefix: false,
            wrap: false,
            search: true,
            ..HubClientOptions::default()
        };
        assert_eq!(HubClientOptions::from_query(&options.query()), Ok(options));
        assert_eq!(HubClientOptions::from_query(""), Ok(HubClientOptions::default()));
    }

    #[test]
    fn unknown_options_and_values_are_errors() {
        for (query, error) in [
            ("wrp=false", BadOption::Name("wrp".to_owned())),
            ("wrap=no", BadOption::Value("wrap")),
            ("tools=few", BadOption::Value("tools")),
        ] {
            assert_eq!(HubClientOptions::from_query(query), Err(error));
        }
    }
}
