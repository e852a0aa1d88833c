//! `openclaw mcp install` and `uninstall`: this program as an MCP server of other programs (S7).

use std::path::Path;

use openclaw_config::install::{InstallChange, InstallError, McpClient};
use serde_json::{Map, Value, json};

use crate::cli::{ClientArg, InstallArgs, InstallTarget};
use crate::commands::sessions::agree;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::{Output, printable};
use openclaw_terminal::style::{FAINT, GOOD};

pub(super) fn install(args: &InstallArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let client = client(args.target.client);
    let file = file(&args.target, client, edge)?;
    let command = match &args.command {
        Some(command) => command.clone(),
        None => edge.this_program().context("cannot find the path of this program")?,
    };
    let mut line = vec!["mcp-server".to_owned()];
    if !args.agent_only {
        line.push("--hub".to_owned());
    }
    if let Some(agent) = &args.agent {
        line.extend(["--agent".to_owned(), agent.clone()]);
    }
    if let Some(config) = edge.config_flag() {
        line.extend(["--config".to_owned(), edge.absolute(&config.to_string_lossy())]);
    }
    let variables = variables(edge);
    let change = client.install(file.clone(), &args.target.name, &command, &line, variables);
    let change = change.map_err(|error| failed(&error, client, &file))?;
    carry_out(&change, &args.target, client, edge, output)
}

/// The variables that lead to the configuration and the state of this user: the other program starts this
/// one without them.
fn variables(edge: &Edge) -> Map<String, Value> {
    let environment = edge.environment();
    // The flag is in the arguments.
    let names = match edge.config_flag() {
        Some(_) => &["OPENCLAW_STATE_DIR"][..],
        None => &["OPENCLAW_STATE_DIR", "OPENCLAW_CONFIG_PATH"],
    };
    let set = names.iter().filter_map(|&name| {
        let value = environment.get(name).filter(|value| !value.is_empty())?;
        Some((name.to_owned(), json!(edge.absolute(&value))))
    });
    set.collect()
}

pub(super) fn uninstall(target: &InstallTarget, edge: &Edge, output: &mut Output) -> CommandResult {
    let client = client(target.client);
    let file = file(target, client, edge)?;
    let change = client.uninstall(file.clone(), &target.name);
    let change = change.map_err(|error| failed(&error, client, &file))?;
    carry_out(&change, target, client, edge, output)
}

/// Returns the file to change. Our own configuration is not one: a hub must not contain itself.
fn file(
    target: &InstallTarget,
    client: McpClient,
    edge: &Edge,
) -> Result<std::path::PathBuf, CommandError> {
    if target.name.trim().is_empty() {
        return Err(CommandError::usage("`--name` is empty"));
    }
    let file = match &target.file {
        Some(file) => file.clone(),
        None => edge
            .settings_of(client)
            .context("cannot read the current folder")?
            .map_err(|error| CommandError::failed(error.to_string()).hint("use `--file FILE`"))?,
    };
    let ours = edge.paths()?.config;
    let real = |path: &Path| openclaw_files::canonical(path).unwrap_or_else(|_| path.to_owned());
    if real(&file) == real(&ours) {
        return Err(CommandError::usage(format!(
            "{} is the configuration of this program",
            file.display()
        ))
        .cause("a server that contains itself would never finish starting")
        .hint("use `--file FILE` with the file of the other program"));
    }
    Ok(file)
}

fn failed(error: &InstallError, client: McpClient, file: &Path) -> CommandError {
    CommandError::failed(format!("cannot change {}", file.display())).cause(error.to_string()).hint(
        format!("docs/mcp-server.md shows what to write into the settings of {}", client.title()),
    )
}

/// Shows the change, and writes it if the user agrees.
fn carry_out(
    change: &InstallChange,
    target: &InstallTarget,
    client: McpClient,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let file = change.file.display().to_string();
    let is_wanted = !change.is_done() && !target.dry_run;
    if is_wanted && change.before.as_ref().is_some_and(|entry| !is_ours(entry)) {
        let words =
            format!("the server `{}` of {} is another program", target.name, client.title());
        return Err(CommandError::usage(words)
            .cause(format!("{} in {file}", change.path.join(".")))
            .hint("use `--name NAME`, or remove it by hand"));
    }
    if !output.json {
        match (change.is_done(), &change.after) {
            (true, Some(_)) => output.line(format_args!(
                "{} already has `{}`",
                client.title(),
                printable(&target.name)
            )),
            (true, None) => output.line(format_args!(
                "{} has no server `{}`",
                client.title(),
                printable(&target.name)
            )),
            (false, _) => show(change, output),
        }
    }
    if is_wanted && !target.yes {
        if output.json {
            return Err(CommandError::usage("`--json` needs `--yes` or `--dry-run`"));
        }
        if !agree(&format!("Change {file}?"), "use `--yes` to change it", edge, output)? {
            output.line("Nothing was changed.");
            return Ok(Exit::Failed);
        }
    }
    if is_wanted {
        change.write().map_err(|error| {
            CommandError::failed(format!("cannot change {file}")).cause(error.to_string())
        })?;
    }
    if output.json {
        output.value(&json!({
            "ok": true,
            "client": client.title(),
            "file": file,
            "path": change.path,
            "before": change.before.as_ref().map(masked),
            "after": change.after,
            "changed": is_wanted,
        }));
    } else if is_wanted {
        output.line(format_args!("{GOOD}✓{GOOD:#} changed {file}"));
        if change.after.is_some() {
            output.line(format_args!("  {FAINT}restart {} to use it{FAINT:#}", client.title()));
        }
    }
    Ok(Exit::Ok)
}

/// Shows the entry before and after the change. The rest of the file is not shown: it may contain
/// credentials.
fn show(change: &InstallChange, output: &mut Output) {
    output.line(format_args!("{}", change.file.display()));
    let path = change.path.join(".");
    for (mark, entry) in [('-', change.before.as_ref().map(masked)), ('+', change.after.clone())] {
        let Some(entry) = entry else { continue };
        let pretty = serde_json::to_string_pretty(&entry).unwrap_or_default();
        let text = format!("{path}: {pretty}");
        for line in text.lines() {
            output.line(format_args!("{mark} {}", printable(line)));
        }
    }
}

/// Replaces the values that may be credentials: those of variables and headers.
fn masked(entry: &Value) -> Value {
    let Value::Object(members) = entry else { return entry.clone() };
    let hidden = |value: &Value| match value {
        Value::Object(members) => {
            members.keys().map(|key| (key.clone(), json!("…"))).collect::<Map<_, _>>().into()
        }
        _ => json!("…"),
    };
    // The arguments of another program may contain a credential.
    let is_ours = is_ours(entry);
    let is_plain = |key: &str| match key {
        "type" | "source" | "command" | "enabled" => true,
        "args" => is_ours,
        _ => false,
    };
    let masked = members.iter().map(|(key, value)| match is_plain(key) {
        true => (key.clone(), value.clone()),
        false => (key.clone(), hidden(value)),
    });
    Value::Object(masked.collect())
}

/// Whether an entry runs this program.
fn is_ours(entry: &Value) -> bool {
    let args = entry.get("args").and_then(Value::as_array);
    args.is_some_and(|args| args.iter().any(|arg| arg == "mcp-server"))
}

fn client(arg: ClientArg) -> McpClient {
    match arg {
        ClientArg::ClaudeCode => McpClient::ClaudeCode,
        ClientArg::ClaudeDesktop => McpClient::ClaudeDesktop,
        ClientArg::Cursor => McpClient::Cursor,
        ClientArg::Vscode => McpClient::VsCode,
        ClientArg::Codex => McpClient::Codex,
        ClientArg::Zed => McpClient::Zed,
        ClientArg::GeminiCli => McpClient::GeminiCli,
        ClientArg::Openclaw => McpClient::NodeOpenClaw,
    }
}
