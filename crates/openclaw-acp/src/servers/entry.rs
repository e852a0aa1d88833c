//! The entries of `mcpServers`, validated. Messages quote no value but names: the others may be
//! secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_config::{
    AcpSettings, Args, Expanded, HttpFlavour, HttpServer, OAuthSettings, ProxySetting,
    RootsSetting, ServerConfig, ServerConnection, ServerName, ServerOptions, StdioServer,
    TlsSettings, Transport,
};
use openclaw_secrets::SecretTemplate;
use serde_json::{Map, Value};
use url::{Host, ParseError, Url};

/// A server that an editor passed.
#[derive(Debug, Clone)]
pub(crate) struct EditorServer {
    name: ServerName,
    target: Target,
}

#[derive(Debug, Clone)]
enum Target {
    Local { command: String, args: Vec<String>, env: Pairs },
    Remote { url: Url, flavour: HttpFlavour, headers: Pairs },
}

/// Names and values. Variables and `secret://` in the values mean nothing: an editor must not reach
/// the user's secrets.
type Pairs = BTreeMap<String, SecretTemplate>;

impl EditorServer {
    /// Reads `mcpServers`.
    ///
    /// # Errors
    /// Which entry is invalid, and why.
    pub(crate) fn read_all(
        list: Option<&Value>,
        limits: &AcpSettings,
    ) -> Result<Vec<Self>, String> {
        let list = match list {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(_) => return Err("`mcpServers` must be a list".to_owned()),
        };
        let most = limits.max_servers;
        if list.len() > most {
            return Err(format!(
                "{} MCP servers; at most {most} are allowed per session (setting `acp.maxServers`, \
                 or OPENCLAW_ACP_MAX_SERVERS)",
                list.len()
            ));
        }
        let mut names = BTreeSet::new();
        let mut entries = Vec::with_capacity(list.len());
        for (nth, entry) in list.iter().enumerate() {
            let entry = Self::read(entry).map_err(|why| format!("mcpServers[{nth}]: {why}"))?;
            if !names.insert(entry.name.clone()) {
                return Err(format!("mcpServers[{nth}]: duplicate server name `{}`", entry.name));
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    fn read(entry: &Value) -> Result<Self, String> {
        let Value::Object(entry) = entry else { return Err("not an object".to_owned()) };
        let name = read_name(text(entry, "name")?)?;
        let is_remote = entry.contains_key("url") && !entry.contains_key("command");
        let target = match entry.get("type") {
            None | Some(Value::Null) if is_remote => {
                Err(r#"`type` is missing: add `"type": "http"` or `"type": "sse"`"#.to_owned())
            }
            None | Some(Value::Null) => read_local(entry),
            Some(Value::String(kind)) => match kind.as_str() {
                "stdio" => read_local(entry),
                "http" => read_remote(entry, HttpFlavour::Streamable),
                "sse" => read_remote(entry, HttpFlavour::Sse),
                _ => Err("unknown `type`: expected `stdio`, `http` or `sse`".to_owned()),
            },
            Some(_) => Err("`type` must be a string".to_owned()),
        };
        Ok(Self { target: target.map_err(|why| format!("server `{name}`: {why}"))?, name })
    }

    pub(crate) fn is_local(&self) -> bool {
        matches!(self.target, Target::Local { .. })
    }

    /// Converts the entry to a server of the configuration.
    pub(crate) fn config(
        self,
        folders: &[PathBuf],
        timeout: Duration,
    ) -> (ServerName, ServerConfig) {
        let transport = match self.target {
            Target::Local { command, args, env } => Transport::Stdio(StdioServer {
                command: Expanded::literal(&command),
                args: Args::from(args.iter().map(|it| Expanded::literal(it)).collect::<Vec<_>>()),
                env,
                cwd: folders.first().cloned(),
                inherit_env: Vec::new(),
            }),
            Target::Remote { url, flavour, headers } => Transport::Http(HttpServer {
                url: url.into(),
                flavour,
                headers,
                api_key: None,
                oauth: OAuthSettings::default(),
                tls: TlsSettings::default(),
                proxy: ProxySetting::Environment,
            }),
        };
        let connection = ServerConnection {
            transport,
            sampling: false,
            roots: RootsSetting::Folders(folders.to_vec()),
            protocol_version: None,
        };
        let options = ServerOptions { tool_timeout: timeout, ..ServerOptions::default() };
        (self.name, ServerConfig { enabled: true, connection, options })
    }
}

/// A name that is not valid here, such as one with spaces, is changed to a similar one.
fn read_name(name: &str) -> Result<ServerName, String> {
    ServerName::new(name).or_else(|error| {
        let similar = error.suggestion().and_then(|similar| ServerName::new(similar).ok());
        similar.ok_or_else(|| format!("invalid `name`: {error}"))
    })
}

fn read_local(entry: &Map<String, Value>) -> Result<Target, String> {
    let command = text(entry, "command")?;
    // A plain name is looked up in `PATH`; a relative path would depend on the current folder.
    let is_path = command.contains(['/', '\\']);
    if is_path && !Path::new(command).is_absolute() {
        return Err("`command` must be an absolute path, or the name of a program".to_owned());
    }
    let args = match entry.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(args)) => args
            .iter()
            .map(|arg| arg.as_str().map(ToOwned::to_owned))
            .collect::<Option<_>>()
            .ok_or("`args` must be a list of strings")?,
        Some(_) => return Err("`args` must be a list of strings".to_owned()),
    };
    if command.contains('\0') || args.iter().any(|arg: &String| arg.contains('\0')) {
        return Err("`command` and `args` must not contain NUL characters".to_owned());
    }
    let env = pairs(entry, "env", variable_flaw)?;
    Ok(Target::Local { command: command.to_owned(), args, env })
}

fn read_remote(entry: &Map<String, Value>, flavour: HttpFlavour) -> Result<Target, String> {
    let other_scheme = || "`url` must begin with https:// or http://".to_owned();
    let url = Url::parse(text(entry, "url")?).map_err(|error| match error {
        ParseError::RelativeUrlWithoutBase => other_scheme(),
        error => format!("invalid `url`: {error}"),
    })?;
    let is_loopback = match url.host() {
        Some(Host::Domain(host)) => host == "localhost" || host.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" => {}
        "http" if is_loopback => {}
        "http" => return Err("`url` must use https, except on this machine".to_owned()),
        _ => return Err(other_scheme()),
    }
    Ok(Target::Remote { url, flavour, headers: pairs(entry, "headers", header_flaw)? })
}

fn text<'e>(entry: &'e Map<String, Value>, key: &str) -> Result<&'e str, String> {
    match entry.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        Some(Value::String(_)) => Err(format!("`{key}` is empty")),
        Some(_) => Err(format!("`{key}` must be a string")),
        None => Err(format!("`{key}` is missing")),
    }
}

/// Reads a list of `{name, value}`. `flaw` returns what is wrong with one.
fn pairs(
    entry: &Map<String, Value>,
    key: &str,
    flaw: fn(&str, &str) -> Option<&'static str>,
) -> Result<Pairs, String> {
    let wrong = || format!("`{key}` must be a list of `{{name, value}}` with strings");
    let list = match entry.get(key) {
        None | Some(Value::Null) => return Ok(Pairs::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(wrong()),
    };
    let mut pairs = Pairs::new();
    for (nth, pair) in list.iter().enumerate() {
        let text = |field: &str| pair.get(field).and_then(Value::as_str).ok_or_else(wrong);
        let name = text("name")?;
        let value = text("value")?;
        if let Some(flaw) = flaw(name, value) {
            return Err(format!("`{key}[{nth}]`: {flaw}"));
        }
        pairs.insert(name.to_owned(), SecretTemplate::literal(value));
    }
    Ok(pairs)
}

fn variable_flaw(name: &str, value: &str) -> Option<&'static str> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Some("invalid variable name");
    }
    value.contains('\0').then_some("the value contains a NUL character")
}

fn header_flaw(name: &str, value: &str) -> Option<&'static str> {
    // A token of RFC 9110, section 5.6.2.
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        return Some("invalid header name");
    }
    let is_invalid = |c: char| c.is_ascii_control() && c != '\t';
    value.contains(is_invalid).then_some("the value contains a line break or a control character")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMITS: AcpSettings = AcpSettings { max_servers: 10, max_tools: 100, use_logins: false };

    fn read(list: &Value) -> Result<Vec<EditorServer>, String> {
        EditorServer::read_all(Some(list), &LIMITS)
    }

    #[test]
    fn stdio_needs_no_type_and_lists_of_pairs_are_read() {
        let list = json!([
            {"name": "a", "command": "/bin/a", "args": ["-x"], "env": [{"name": "K", "value": "${HOME} secret://env/X"}]},
            {"name": "My server", "type": "stdio", "command": "npx"},
            {"name": "c", "type": "http", "url": "https://example.com/mcp", "headers": [{"name": "Authorization", "value": "Bearer x"}]},
            {"name": "d", "type": "sse", "url": "http://127.0.0.1:9/sse", "headers": []},
        ]);
        let entries = read(&list).unwrap();
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a", "My-server", "c", "d"]);
        let (_, config) = entries[0].clone().config(&["/work".into()], Duration::from_secs(1));
        let Transport::Stdio(stdio) = config.connection.transport else { panic!("not local") };
        assert!(stdio.env["K"].is_plain(), "an editor's value is not a reference");
        assert_eq!(stdio.cwd.as_deref(), Some(Path::new("/work")));
    }

    #[test]
    fn invalid_entries_are_named_without_their_values() {
        let stdio = |name: &str| json!({"name": name, "command": "/bin/hunter2"});
        let headers = |name: &str, value: &str| {
            let headers = json!([{"name": name, "value": value}]);
            json!([{"name": "a", "type": "http", "url": "https://a.example", "headers": headers}])
        };
        let many: Vec<Value> = (0..11).map(|nth| stdio(&format!("s{nth}"))).collect();
        for (list, expected) in [
            (json!({"a": "hunter2"}), "`mcpServers` must be a list"),
            (json!(many), "11 MCP servers; at most 10"),
            (json!([stdio("a"), stdio("a")]), "mcpServers[1]: duplicate server name `a`"),
            (json!([{"name": "a", "command": "./hunter2"}]), "absolute path"),
            (json!([{"name": "a", "command": 7}]), "`command` must be a string"),
            (
                json!([{"name": "a", "url": "https://a.example/hunter2"}]),
                r#"server `a`: `type` is missing: add `"type": "http"` or `"type": "sse"`"#,
            ),
            (
                json!([{"name": "a", "command": "/a", "env": {"K": "hunter2"}}]),
                "`env` must be a list",
            ),
            (
                json!([{"name": "a", "type": "http", "url": "http://example.com/hunter2"}]),
                "must use https",
            ),
            (json!([{"name": "a", "type": "hunter2"}]), "unknown `type`"),
            (json!([{"name": "a", "type": "http", "url": "hunter2"}]), "must begin with https://"),
            (json!([stdio("💥")]), "mcpServers[0]: invalid `name`: a name may only contain"),
            (json!([{"name": "a", "command": "/a", "args": ["hunter2\0"]}]), "NUL characters"),
            (
                json!([{"name": "a", "command": "/a", "env": [{"name": "K", "value": "hunter2\0"}]}]),
                "server `a`: `env[0]`: the value contains a NUL character",
            ),
            (
                json!([{"name": "a", "command": "/a", "env": [{"name": "K=", "value": "hunter2"}]}]),
                "`env[0]`: invalid variable name",
            ),
            (headers("X Key", "hunter2"), "`headers[0]`: invalid header name"),
            (headers("X-Key", "hunter2\r\nX: y"), "`headers[0]`: the value contains a line break"),
            (json!(["hunter2"]), "not an object"),
        ] {
            let error = read(&list).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
