//! The resources and prompts of an agent's servers (B14, B15).

use std::collections::BTreeMap;
use std::time::Instant;

use openclaw_tools::{Failure, ToolName, ToolOutcome};
use serde_json::value::to_raw_value;

use crate::agent::AgentTools;
use crate::bridge::limited;
use crate::listing::{ListedPrompt, ListedResource, ListedTemplate};
use crate::naming::{RawTool, names};
use crate::results::{self, Origin, ResultLimits};
use crate::server::Server;

/// How prompts are named as commands.
const COMMANDS: &str = "mcp__{server}__{tool}";

/// Something that a server has.
#[derive(Debug, Clone)]
pub struct Of<T> {
    /// The server.
    pub server: String,
    /// What it has.
    pub entry: T,
}

/// A prompt, and the name of the slash command that it is reached by.
#[derive(Debug, Clone)]
pub struct PromptCommand {
    /// The name, without the slash.
    pub command: ToolName,
    /// The prompt.
    pub prompt: Of<ListedPrompt>,
}

impl AgentTools {
    /// The resources of all servers.
    pub fn resources(&self) -> Vec<Of<ListedResource>> {
        self.entries(|server| server.shelf().inventory().resources.clone())
    }

    /// The templates of all servers.
    pub fn templates(&self) -> Vec<Of<ListedTemplate>> {
        self.entries(|server| server.shelf().inventory().templates.clone())
    }

    fn entries<T>(&self, of: impl Fn(&Server) -> Vec<T>) -> Vec<Of<T>> {
        let entries = self.servers().iter().flat_map(|server| {
            let name = server.name().to_string();
            of(server).into_iter().map(move |entry| Of { server: name.clone(), entry })
        });
        entries.collect()
    }

    /// The prompts of all servers, as slash commands.
    pub fn prompts(&self) -> Vec<PromptCommand> {
        let prompts = self.entries(|server| server.shelf().inventory().prompts.clone());
        let raw = prompts.iter().map(|of| raw_prompt(of)).collect::<Vec<_>>();
        let names = names(COMMANDS, raw);
        let commands = prompts.iter().filter_map(|of| {
            let command = names.get(&raw_prompt(of))?.clone();
            Some(PromptCommand { command, prompt: of.clone() })
        });
        commands.collect()
    }

    /// Reads a resource.
    pub async fn read(&self, server: &str, uri: &str) -> ToolOutcome {
        let params = || BTreeMap::from([("uri", to_raw_value(uri).unwrap_or_default())]);
        self.ask(server, "resources/read", uri, params).await
    }

    /// Gets a prompt, with its arguments filled in.
    pub async fn prompt(
        &self,
        server: &str,
        prompt: &str,
        arguments: &BTreeMap<String, String>,
    ) -> ToolOutcome {
        let params = || {
            BTreeMap::from([
                ("name", to_raw_value(prompt).unwrap_or_default()),
                ("arguments", to_raw_value(arguments).unwrap_or_default()),
            ])
        };
        self.ask(server, "prompts/get", prompt, params).await
    }

    async fn ask(
        &self,
        name: &str,
        method: &str,
        what: &str,
        params: impl Fn() -> BTreeMap<&'static str, Box<serde_json::value::RawValue>>,
    ) -> ToolOutcome {
        let origin = Origin { server: name, tool: what };
        let Some(server) = self.server(name) else {
            let words = "There is no such MCP server, or it does not run.".to_owned();
            return results::failure(Failure::Unavailable, words, None);
        };
        if let Err(wait) = server.limiter.check() {
            return results::failure(Failure::RateLimited, limited(name, wait), Some(origin));
        }
        let attached = match server.ready().await {
            Ok(attached) => attached,
            Err(unavailable) => {
                let words = unavailable.to_string();
                return results::failure(Failure::Unavailable, words, Some(origin));
            }
        };
        let started = Instant::now();
        let answer = attached.connection().request(method, params(), server.limits).await;
        let duration = started.elapsed();
        let limits = ResultLimits { max_chars: server.config().max_result_chars };
        let spill = self.office.spill.as_deref();
        let outcome = match answer {
            Ok(raw) if method == "prompts/get" => {
                results::prompt_outcome(raw, name, what, limits, spill, duration)
            }
            Ok(raw) => results::resource_outcome(raw, name, what, limits, spill, duration),
            Err(error) => results::call_failed(error, origin),
        };
        server.stats.record(duration, outcome.is_error);
        tracing::debug!(server = name, method, duration_ms = duration.as_secs_f64() * 1_000.0);
        outcome
    }
}

fn raw_prompt(of: &Of<ListedPrompt>) -> RawTool<'_> {
    RawTool { server: &of.server, prefix: &of.server, tool: &of.entry.name }
}
