//! Executes commands.

use std::fmt::Write as _;
use std::sync::Arc;

use openclaw_agent::part_of;
use openclaw_content::{Text, Untrusted, clean_line};
use openclaw_mcp::call::library::PromptCommand;
use openclaw_mcp::server::status::ServerState;
use openclaw_models::Part;
use openclaw_protocol::ErrorShape;
use openclaw_protocol::sessions::{DescribeParams, PatchParams, Row, SessionParams};
use openclaw_sessions::SessionKey;
use openclaw_tools::ToolSource as _;

use super::ChatCommand;
use super::list::{help, list};
use super::model::ModelCommand;
use crate::agents::AgentRuntime;
use crate::callers::Connected;
use crate::mcp::{DirectCaller, McpServers, prompt_for_model};
use crate::runs::Runs;
use crate::sessions::Sessions;

/// Maximum length of a listed description, in characters.
const DESCRIPTION: usize = 120;
/// Maximum length of a title or a model's name in an answer, in characters.
const NAME: usize = 200;

/// How a message is interpreted.
pub(crate) enum ParsedMessage {
    /// Content to send to the model.
    Turn(Vec<Part>),
    /// The output of a command that was executed.
    Done(String),
    /// A request to summarize the session.
    Compact,
}

/// The message that contains a command. The caller has the scope of its method.
pub(crate) struct CommandRun<'a> {
    pub(crate) sessions: &'a Sessions,
    pub(crate) runs: &'a Runs,
    pub(crate) servers: &'a Arc<McpServers>,
    /// The version of this program.
    pub(crate) version: &'a str,
    pub(crate) caller: &'a Connected,
    pub(crate) agent: &'a AgentRuntime,
    pub(crate) key: &'a SessionKey,
    /// Its run, which is not one of those that it is about.
    pub(crate) run: &'a str,
}

impl CommandRun<'_> {
    /// Executes the command.
    pub(crate) async fn execute(&self, command: ChatCommand) -> ParsedMessage {
        let done = match command {
            ChatCommand::Compact => return ParsedMessage::Compact,
            ChatCommand::Prompt(prompt, rest) => return self.prompt(&prompt, &rest).await,
            ChatCommand::Reset(rest) => match self.reset().await {
                Ok(_) if !rest.is_empty() => {
                    return ParsedMessage::Turn(vec![Part::Text(Text::user(rest))]);
                }
                done => done,
            },
            ChatCommand::Help => Ok(self.help()),
            ChatCommand::Status => self.status().await,
            ChatCommand::Tools => Ok(self.tools()),
            ChatCommand::Usage => Ok(self.sessions.usage(self.agent, self.key).await),
            ChatCommand::Stop => Ok(self.stop()),
            ChatCommand::Name(title) => self.name(title).await,
            ChatCommand::Model(command) => self.model(command).await,
            // Like the tool `mcp_manage`, without a model.
            ChatCommand::Mcp(command) => {
                let tools = &*self.agent.tools;
                Ok(command
                    .execute(
                        self.servers,
                        &self.agent.config.id,
                        tools,
                        &self.caller.caller().scopes,
                    )
                    .await)
            }
            ChatCommand::Absent(command) => Ok(command.text()),
        };
        ParsedMessage::Done(done.unwrap_or_else(|error| format!("error: {}", error.message)))
    }

    fn help(&self) -> String {
        let servers = self.servers.agent(&self.agent.config.id);
        help(&list(servers.as_deref(), &*self.agent.tools))
    }

    async fn prompt(&self, prompt: &PromptCommand, rest: &str) -> ParsedMessage {
        let arguments = match prompt.arguments(rest) {
            Ok(arguments) => arguments,
            Err(message) => return ParsedMessage::Done(message),
        };
        let Some(tools) = self.servers.agent(&self.agent.config.id) else {
            return ParsedMessage::Done("error: the agent no longer exists".to_owned());
        };
        let who = self.caller.name();
        let decides = self.caller.decides();
        let caller = DirectCaller { who: &who, decides, watcher: None, trace: None };
        let outcome = match prompt_for_model(&tools, &prompt.prompt, &arguments, caller).await {
            Ok(outcome) => outcome,
            Err(problem) => return ParsedMessage::Done(format!("error: {}", problem.message)),
        };
        if outcome.is_error {
            return ParsedMessage::Done(outcome.text());
        }
        let mut parts = vec![Part::ours(prompt.lead())];
        parts.extend(outcome.content.into_iter().map(part_of));
        ParsedMessage::Turn(parts)
    }

    async fn reset(&self) -> Result<String, ErrorShape> {
        let params = SessionParams { key: self.key.to_string(), agent_id: None };
        self.sessions.reset(params, Some(self.run)).await?;
        Ok("The session begins anew.".to_owned())
    }

    fn stop(&self) -> String {
        let others = self.runs.active(self.key.as_str()).into_iter().filter(|run| run != self.run);
        let stopped: usize =
            others.map(|run| self.runs.cancel(self.key.as_str(), Some(&run)).len()).sum();
        match stopped {
            0 => "Nothing is running in this session.".to_owned(),
            _ => "Stopped.".to_owned(),
        }
    }

    async fn row(&self) -> Result<Row, ErrorShape> {
        let params = DescribeParams { key: self.key.to_string(), ..DescribeParams::default() };
        let described = self.sessions.describe(params).await?;
        Ok(match described.session {
            Some(row) => row,
            None => self.sessions.missing(self.key).await,
        })
    }

    async fn status(&self) -> Result<String, ErrorShape> {
        let row = self.row().await?;
        let agent = &self.agent.config.id;
        let mut text = format!(
            "OpenClaw {}\nAgent: {agent}\nSession: {}\nModel: {}",
            self.version,
            self.key,
            shown(row.model.as_deref().unwrap_or("none")),
        );
        if let Some(title) = &row.display_name {
            let _ = write!(text, "\nTitle: {}", shown(title));
        }
        if let Some(tokens) = row.total_tokens {
            let window = row.context_tokens.map(|window| format!(" of {window}"));
            let _ = write!(text, "\nContext: {tokens}{} tokens", window.unwrap_or_default());
        }
        let others = self.runs.active(self.key.as_str()).len().saturating_sub(1);
        let _ = write!(text, "\nRunning: {}", if others > 0 { "a turn" } else { "nothing" });
        if self.servers.agent(agent).is_some() {
            let statuses = self.servers.statuses(agent);
            let ready = statuses.iter().filter(|it| it.state == ServerState::Ready).count();
            let _ = write!(text, "\nMCP servers: {ready} of {} ready", statuses.len());
        }
        Ok(text)
    }

    fn tools(&self) -> String {
        let tools = self.agent.tools.tools();
        let lines = tools.iter().map(|tool| {
            let spec = tool.spec();
            let about = clean_line(Untrusted::new(&spec.description), DESCRIPTION);
            format!("{}  {about}", spec.name)
        });
        match tools.is_empty() {
            true => "No tools.".to_owned(),
            false => lines.collect::<Vec<_>>().join("\n"),
        }
    }

    async fn patch(&self, change: PatchParams) -> Result<Row, ErrorShape> {
        let params = PatchParams { key: self.key.to_string(), ..change };
        Ok(self.sessions.patch(params).await?.entry)
    }

    async fn name(&self, title: String) -> Result<String, ErrorShape> {
        if title.is_empty() {
            return Ok(match self.row().await?.display_name {
                Some(title) => format!("This session is named `{}`.", shown(&title)),
                None => "This session has no name; `/name TITLE` sets it.".to_owned(),
            });
        }
        let change = PatchParams { label: Some(Some(title)), ..PatchParams::default() };
        let row = self.patch(change).await?;
        Ok(format!("Named `{}`.", shown(row.display_name.as_deref().unwrap_or_default())))
    }

    async fn model(&self, command: ModelCommand) -> Result<String, ErrorShape> {
        match command {
            ModelCommand::Show => {
                let model = self.row().await?.model.unwrap_or_default();
                Ok(format!(
                    "Model: {}\n`/model NAME` switches, `/models` lists them.",
                    shown(&model)
                ))
            }
            ModelCommand::List => {
                let models = self.agent.models.list(None).await;
                let names = models.iter().map(|model| shown(&model.id));
                Ok(names.collect::<Vec<_>>().join("\n"))
            }
            ModelCommand::Set(model) => {
                let change = PatchParams { model: Some(model), ..PatchParams::default() };
                let row = self.patch(change).await?;
                Ok(format!("Model: {}", shown(row.model.as_deref().unwrap_or_default())))
            }
            ModelCommand::OtherScope => Ok("`/model` is for this session only: set the model of \
                                            an agent with `openclaw config`."
                .to_owned()),
        }
    }
}

fn shown(text: &str) -> String {
    clean_line(Untrusted::new(text), NAME)
}
