//! The scenarios, each run after the server is connected and its tools are listed.

use std::collections::BTreeMap;
use std::error::Error;

use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp_client::listing::SkillFiles;
use openclaw_tools::{CallContext, ToolOutcome};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The caller of all calls.
const WHO: &str = "conformance";

/// Why a scenario failed.
pub(crate) type Problem = Box<dyn Error>;

/// A scenario of the suite.
#[derive(Debug)]
pub(crate) enum Scenario {
    /// Only connects and lists the tools.
    ConnectOnly,
    /// Calls these tools one after the other.
    Calls(Vec<(String, Value)>),
    /// Calls two tools concurrently, then two others.
    Rounds,
    /// Calls every tool in the catalogue.
    EveryTool,
    /// Sends a tool's schema back unchanged.
    SchemaEcho,
    /// Sends one request of every kind.
    OneOfEach,
    /// Reads all files of every skill, up to one that is refused.
    Skills,
}

impl Scenario {
    pub(crate) fn new(name: &str, context: Option<&str>) -> Result<Self, Problem> {
        let call = |tool: &str, arguments: Value| Self::Calls(vec![(tool.to_owned(), arguments)]);
        Ok(match name {
            "initialize"
            | "request-metadata"
            | "json-schema-ref-no-deref"
            | "sep-2640-client-no-prefetch" => Self::ConnectOnly,
            name if name.starts_with("sep-2640-client-verify-") => Self::Skills,
            "tools_call" => call("add_numbers", json!({ "a": 5, "b": 3 })),
            "elicitation-sep1034-client-defaults" => {
                call("test_client_elicitation_defaults", json!({}))
            }
            "sse-retry" => call("test_reconnection", json!({})),
            "json-schema-2020-12-preservation" => Self::SchemaEcho,
            "sep-2322-client-request-state" => Self::Rounds,
            "http-standard-headers" => Self::OneOfEach,
            "http-invalid-tool-headers" => Self::EveryTool,
            "http-custom-headers" => {
                let context: Value = serde_json::from_str(context.ok_or("no context given")?)?;
                let calls = context["toolCalls"].as_array().ok_or("`toolCalls` is missing")?;
                let read = |call: &Value| {
                    let name = call["name"].as_str().ok_or("a call without a name")?;
                    Ok((name.to_owned(), call["arguments"].clone()))
                };
                Self::Calls(calls.iter().map(read).collect::<Result<_, Problem>>()?)
            }
            // Two calls: the token of the second may be rejected, or lack a scope.
            name if name.starts_with("auth/") => {
                Self::Calls(vec![("test-tool".to_owned(), json!({})); 2])
            }
            _ => return Err(format!("unknown scenario `{name}`").into()),
        })
    }

    pub(crate) async fn play(&self, tools: &AgentTools) -> Result<(), Problem> {
        match self {
            Self::ConnectOnly => {}
            Self::Calls(calls) => {
                for (tool, arguments) in calls {
                    call(tools, tool, arguments).await?;
                }
            }
            Self::Rounds => {
                let nothing = json!({});
                let (echo, unrelated) = tokio::join!(
                    call(tools, "test_mrtr_echo_state", &nothing),
                    call(tools, "test_mrtr_unrelated", &nothing),
                );
                echo.and(unrelated)?;
                call(tools, "test_mrtr_no_state", &nothing).await?;
                call(tools, "test_mrtr_no_result_type", &nothing).await?;
            }
            Self::EveryTool => {
                for tool in tools.catalogue().allowed() {
                    call(tools, &tool.listed().name, &json!({ "region": "us-east1" })).await?;
                }
            }
            Self::SchemaEcho => {
                let catalogue = tools.catalogue();
                let tool = catalogue.find("suite", "json_schema_2020_12_tool");
                let tool = tool.ok_or("the tool with the schema is not listed")?;
                let schema = Value::Object((*tool.listed().input_schema).clone());
                call(tools, "json_schema_echo", &json!({ "schema": schema })).await?;
            }
            Self::Skills => {
                let by_hand = CallContext::by_hand(WHO);
                for skill in tools.skills() {
                    let SkillFiles::Listed(files) = &skill.entry.resources else { continue };
                    succeeded(&tools.read(&skill.server, &skill.entry.uri, &by_hand).await)?;
                    for file in files {
                        succeeded(&tools.read(&skill.server, &file.uri, &by_hand).await)?;
                    }
                }
            }
            Self::OneOfEach => {
                call(tools, "test_headers", &json!({})).await?;
                let by_hand = CallContext::by_hand(WHO);
                for resource in tools.resources() {
                    succeeded(&tools.read(&resource.server, &resource.entry.uri, &by_hand).await)?;
                }
                for prompt in tools.prompts() {
                    let of = prompt.prompt;
                    succeeded(
                        &tools.prompt(&of.server, &of.entry.name, &BTreeMap::new(), &by_hand).await,
                    )?;
                }
            }
        }
        Ok(())
    }
}

async fn call(tools: &AgentTools, tool: &str, arguments: &Value) -> Result<(), Problem> {
    let catalogue = tools.catalogue();
    let listed = catalogue.find("suite", tool);
    let listed = listed.ok_or_else(|| format!("the tool `{tool}` is not listed"))?;
    let arguments = RawValue::from_string(arguments.to_string())?;
    let name = listed.spec.name.as_str();
    succeeded(&tools.call(name, &arguments, &CallContext::by_hand(WHO)).await)
}

fn succeeded(outcome: &ToolOutcome) -> Result<(), Problem> {
    if outcome.is_error { Err(outcome.text().into()) } else { Ok(()) }
}
