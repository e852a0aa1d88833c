//! The resources and prompts of an agent's servers (B14, B15).

use std::collections::BTreeMap;
use std::time::Instant;

use openclaw_tools::{Failure, ToolName, ToolOutcome};
use serde_json::value::{RawValue, to_raw_value};

use crate::agent::AgentTools;
use crate::bridge::{Call, LARGE, Wishes, elsewhere};
use crate::listing::{ListedPrompt, ListedResource, ListedTemplate};
use crate::naming::{RawTool, names};
use crate::record::Recorder;
use crate::results::{self, Origin};
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

    /// Reads a resource, for somebody.
    pub async fn read(&self, server: &str, uri: &str, who: &str) -> ToolOutcome {
        self.read_with(server, uri, who, Wishes::default()).await
    }

    /// The same for somebody with wishes. Nobody is told of progress: it is a matter of calls.
    pub async fn read_with(
        &self,
        server: &str,
        uri: &str,
        who: &str,
        wishes: Wishes<'_>,
    ) -> ToolOutcome {
        let params = BTreeMap::from([("uri", to_raw_value(uri).unwrap_or_default())]);
        let given = to_raw_value(&params).unwrap_or_default();
        let asked = Asked { method: "resources/read", what: uri, params };
        self.ask(server, asked, &given, who, wishes).await
    }

    /// Gets a prompt for somebody, with its arguments filled in.
    pub async fn prompt(
        &self,
        server: &str,
        prompt: &str,
        arguments: &BTreeMap<String, String>,
        who: &str,
    ) -> ToolOutcome {
        self.prompt_with(server, prompt, arguments, who, Wishes::default()).await
    }

    /// The same for somebody with wishes.
    pub async fn prompt_with(
        &self,
        server: &str,
        prompt: &str,
        arguments: &BTreeMap<String, String>,
        who: &str,
        wishes: Wishes<'_>,
    ) -> ToolOutcome {
        let given = to_raw_value(arguments).unwrap_or_default();
        let params = BTreeMap::from([
            ("name", to_raw_value(prompt).unwrap_or_default()),
            ("arguments", given.clone()),
        ]);
        let asked = Asked { method: "prompts/get", what: prompt, params };
        self.ask(server, asked, &given, who, wishes).await
    }

    /// Asks, and writes down with what.
    async fn ask(
        &self,
        server: &str,
        asked: Asked<'_>,
        given: &RawValue,
        who: &str,
        wishes: Wishes<'_>,
    ) -> ToolOutcome {
        let call =
            Call { name: asked.method, arguments: given, who, session: None, approved: None };
        let record = Recorder::new(self, call, server, asked.what);
        record.write(self.carry_out_request(server, asked, wishes).await)
    }

    async fn carry_out_request(
        &self,
        name: &str,
        asked: Asked<'_>,
        wishes: Wishes<'_>,
    ) -> ToolOutcome {
        let Asked { method, what, params } = asked;
        let origin = Origin { server: name, tool: what };
        let Some(server) = self.server(name) else {
            let words = "There is no such MCP server, or it does not run.".to_owned();
            return results::failure(Failure::Unavailable, words, None);
        };
        let usable = match self.usable(server).await {
            Ok(usable) => usable,
            Err((kind, words)) => return results::failure(kind, words, Some(origin)),
        };
        let started = Instant::now();
        let connection = usable.attached.connection();
        let _at_work = connection.client().working_for(self.id().as_str(), None);
        let answer = connection.request(method, params, wishes.limits(server)).await;
        let duration = started.elapsed();
        let limits = wishes.result_limits(server);
        let outcome = match answer {
            Ok(raw) => {
                server.was_let_in();
                let spill = self.office.spill.clone();
                let is_prompt = method == "prompts/get";
                let is_large = raw.get().len() >= LARGE;
                let (name, what) = (name.to_owned(), what.to_owned());
                let reading = move || {
                    let spill = spill.as_deref();
                    if is_prompt {
                        results::prompt_outcome(raw, &name, &what, limits, spill, duration)
                    } else {
                        results::resource_outcome(raw, &name, &what, limits, spill, duration)
                    }
                };
                if is_large { elsewhere(reading).await } else { reading() }
            }
            Err(error) => {
                self.failed(server, &usable.attached, &error).await;
                results::call_failed(error, origin)
            }
        };
        server.stats.record(duration, outcome.is_error);
        outcome
    }
}

/// A request for something that is no tool.
struct Asked<'a> {
    method: &'a str,
    what: &'a str,
    params: BTreeMap<&'static str, Box<RawValue>>,
}

fn raw_prompt(of: &Of<ListedPrompt>) -> RawTool<'_> {
    RawTool { server: &of.server, prefix: &of.server, tool: &of.entry.name }
}
