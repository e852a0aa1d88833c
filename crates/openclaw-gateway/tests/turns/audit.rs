//! Every call and every rejection leaves exactly one line in the audit log, whatever the source of
//! the tool, the caller, and the outcome (N3).

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_gateway::Gateway;
use openclaw_testkit::Script;
use openclaw_tools::audit::Audit;
use serde_json::{Value, json};

use crate::support::{KEY, Place, Someone, config, entry, entry_with, stop};

/// A gateway and its audit log.
struct Audited {
    gateway: Arc<Gateway>,
    audit: Audit,
    file: PathBuf,
    read: usize,
    runs: usize,
    _place: Place,
}

impl Audited {
    async fn start(config: &Value) -> Self {
        let place = Place::new(config);
        let (gateway, audit, file) = place.start_audited().await;
        Self { gateway, audit, file, read: 0, runs: 0, _place: place }
    }

    /// The one line written since the last check.
    async fn line(&mut self, of: &str) -> Value {
        assert!(self.audit.flush().await);
        let text = std::fs::read_to_string(&self.file).unwrap();
        let new: Vec<&str> = text.lines().skip(self.read).collect();
        assert_eq!(new.len(), 1, "{of}: {new:#?}");
        self.read += 1;
        serde_json::from_str(new[0]).unwrap()
    }

    /// Expects a line with this source, tool, outcome, and check that rejected the call; `-` for
    /// none.
    async fn expect(&mut self, of: &str, expected: &str) {
        let line = self.line(of).await;
        let found = ["source", "tool", "outcome", "refusedBy"];
        let found = found.map(|key| line[key].as_str().unwrap_or("-")).join(" ");
        assert_eq!(found, expected, "{of}: {line}");
        assert!(line["who"].is_string() && line["argumentsSha256"].is_string(), "{line}");
    }

    /// Begins a turn with a call made by a model.
    async fn begin(&mut self, user: &Someone, call: &str) -> String {
        self.runs += 1;
        let run = format!("r{}", self.runs);
        user.send(KEY, &run, &format!("/call {call}")).await;
        run
    }

    /// A call made by a model, to the end of its turn; a question on the way is answered.
    async fn turn(&mut self, user: &mut Someone, call: &str, decision: Option<&str>) {
        let run = self.begin(user, call).await;
        if let Some(decision) = decision {
            let asked = user.hear_of("approval.requested").await;
            user.decide(&asked, decision).await;
        }
        user.end_of(&run).await;
    }

    /// A call made by a model that is cancelled.
    async fn cancelled_turn(&mut self, user: &mut Someone, call: &str, until: &str) {
        let run = self.begin(user, call).await;
        match until {
            "" => drop(user.until_called(&run).await),
            event => drop(user.hear_of(event).await),
        }
        user.ask("chat.abort", json!({ "sessionKey": KEY })).await.unwrap();
        user.end_of(&run).await;
    }
}

/// The tool of a call.
fn name(call: &str) -> &str {
    call.split(' ').next().unwrap()
}

async fn lend(lender: &Someone) {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let tool = |name: &str, read_only: bool| {
        json!({ "name": name, "description": "", "readOnly": read_only, "parameters": schema,
                "timeoutMs": 500 })
    };
    let tools = [tool("open_file", true), tool("close_file", false)];
    let params = json!({ "sessionKey": KEY, "tools": tools });
    lender.ask("sessions.setExtraTools", params).await.unwrap();
}

fn servers() -> Value {
    let usual = Script::new();
    json!({
        "x": entry(&usual),
        "asks": entry_with(&usual, &json!({ "approval": "always" })),
        "few": entry_with(&usual, &json!({ "rateLimit": 1 })),
        "slow": entry_with(&usual, &json!({ "toolTimeout": 300 })),
        "gone": { "command": "/nowhere/at/all", "maxRestarts": 0 },
    })
}

#[tokio::test]
async fn calls_of_a_model_leave_one_line_each() {
    let mut config = config(&servers());
    config["tools"] = json!({ "deny": ["mcp_x_image", "edit"] });
    // It reports progress all the time, which extends the timeout up to the cap.
    config["mcp"]["callTimeoutCapMs"] = json!(1_000);
    let mut audited = Audited::start(&config).await;
    let mut user = Someone::new(&audited.gateway);
    lend(&user).await;
    let (misfit, declined) = ("invalid-arguments schema", "denied declined");
    // The call, the user's decision if asked; the source, the outcome, and the check that rejected
    // it.
    for (call, decision, source, ended) in [
        // Native tools.
        ("list {}", None, "native", "ok -"),
        ("list {\"depth\":\"x\"}", None, "native", misfit),
        ("read {\"path\":\"nowhere\"}", None, "native", "error -"),
        ("edit {\"path\":\"a\",\"old\":\"b\",\"new\":\"c\"}", None, "native", "denied policy"),
        ("exec {\"command\":\"true\"}", Some("deny"), "native", declined),
        ("exec {\"command\":\"true\"}", Some("allow-once"), "native", "ok -"),
        (
            "exec {\"command\":\"sleep 60\",\"timeout_ms\":200}",
            Some("allow-once"),
            "native",
            "timed-out -",
        ),
        // Tools of MCP servers.
        ("mcp_x_echo {\"text\":\"a\"}", None, "mcp", "ok -"),
        ("mcp_x_fail {}", None, "mcp", "error -"),
        ("mcp_x_add {\"a\":\"one\"}", None, "mcp", misfit),
        ("mcp_x_image {}", None, "mcp", "denied policy"),
        ("mcp_asks_echo {\"text\":\"a\"}", Some("deny"), "mcp", declined),
        ("mcp_asks_echo {\"text\":\"a\"}", Some("allow-once"), "mcp", "ok -"),
        ("mcp_few_echo {\"text\":\"a\"}", None, "mcp", "ok -"),
        ("mcp_few_echo {\"text\":\"b\"}", None, "mcp", "rate-limited limit"),
        ("mcp_slow_sleep {\"ms\":60000}", None, "mcp", "timed-out -"),
        // Resources, through their tool.
        ("mcp_resources {}", None, "mcp", "ok -"),
        ("mcp_resources {\"server\":7}", None, "mcp", misfit),
        ("mcp_resources {\"server\":\"nowhere\",\"uri\":\"a:b\"}", None, "mcp", "unavailable -"),
        // The tool that manages servers.
        ("mcp_manage {\"action\":\"servers\"}", None, "openclaw", "ok -"),
        ("mcp_manage {\"action\":\"dance\"}", None, "openclaw", misfit),
        (
            "mcp_manage {\"action\":\"refresh\",\"server\":\"x\"}",
            Some("deny"),
            "openclaw",
            declined,
        ),
        // Client tools: the client does not respond.
        ("open_file {\"name\":7}", None, "client", misfit),
        ("open_file {}", None, "client", "timed-out -"),
        ("close_file {}", Some("deny"), "client", declined),
        // An unknown tool.
        ("mcp_gone_echo {}", None, "-", "denied unknown-tool"),
    ] {
        audited.turn(&mut user, call, decision).await;
        audited.expect(call, &format!("{source} {} {ended}", name(call))).await;
    }
    for (call, until, source) in [
        ("mcp_x_sleep {\"ms\":60000}", "", "mcp"),
        ("mcp_asks_echo {\"text\":\"a\"}", "approval.requested", "mcp"),
        ("exec {\"command\":\"sleep 60\"}", "approval.requested", "native"),
        ("open_file {}", "node.invoke.request", "client"),
    ] {
        audited.cancelled_turn(&mut user, call, until).await;
        audited.expect(call, &format!("{source} {} cancelled -", name(call))).await;
    }
    stop(&audited.gateway).await;
}

#[tokio::test]
async fn calls_without_an_approver_leave_one_line_each() {
    let mut audited = Audited::start(&config(&servers())).await;
    let mut writer = Someone::writer(&audited.gateway);
    lend(&writer).await;
    for (call, source) in [
        ("exec {\"command\":\"true\"}", "native"),
        ("mcp_asks_echo {\"text\":\"a\"}", "mcp"),
        ("mcp_manage {\"action\":\"refresh\"}", "openclaw"),
        ("close_file {}", "client"),
    ] {
        audited.turn(&mut writer, call, None).await;
        let expected = format!("{source} {} denied nobody-to-ask", name(call));
        audited.expect(call, &expected).await;
    }
    stop(&audited.gateway).await;
}

#[tokio::test]
async fn tools_that_are_denied_leave_one_line_each() {
    let mut config = config(&json!({ "x": entry(&Script::new()) }));
    let tools = ["list", "mcp_manage", "mcp_resources", "mcp_x_echo", "open_file"];
    config["tools"] = json!({ "deny": tools });
    let mut audited = Audited::start(&config).await;
    let mut user = Someone::new(&audited.gateway);
    lend(&user).await;
    for (tool, source) in tools.into_iter().zip(["native", "openclaw", "mcp", "mcp", "client"]) {
        audited.turn(&mut user, &format!("{tool} {{}}"), None).await;
        audited.expect(tool, &format!("{source} {tool} denied policy")).await;
    }
    stop(&audited.gateway).await;
}

#[tokio::test]
async fn a_search_for_tools_leaves_one_line() {
    let mut config = config(&json!({ "x": entry(&Script::new()) }));
    config["agents"]["defaults"]["toolSearchThreshold"] = json!(1);
    let mut audited = Audited::start(&config).await;
    let mut user = Someone::new(&audited.gateway);
    for (call, ended) in [
        ("tool_search {\"query\":\"echo\"}", "ok -"),
        ("tool_search {}", "invalid-arguments schema"),
    ] {
        audited.turn(&mut user, call, None).await;
        audited.expect(call, &format!("openclaw tool_search {ended}")).await;
    }
    stop(&audited.gateway).await;
}

#[tokio::test]
async fn explicit_calls_leave_one_line_each() {
    let mut config = config(&servers());
    config["tools"] = json!({ "deny": ["mcp_x_image"] });
    let mut audited = Audited::start(&config).await;
    let me = Someone::new(&audited.gateway);
    let writer = Someone::writer(&audited.gateway);
    let uri = me.ask("mcp.resources", json!({ "server": "x" })).await.unwrap();
    let uri = uri["resources"][0]["uri"].clone();
    let prompt = me.ask("mcp.prompts", json!({ "server": "x" })).await.unwrap();
    let prompt = prompt["prompts"][0]["name"].clone();
    let exec = json!({ "command": "true" });
    let confirmed = json!({ "name": "exec", "args": exec, "confirm": true });
    let call = |server: &str, tool: &str| json!({ "server": server, "tool": tool });
    let with = |mut params: Value, args: Value| {
        params["args"] = args;
        params
    };
    let ask_echo = || with(call("asks", "echo"), json!({ "text": "a" }));
    let mut slow = with(call("x", "sleep"), json!({ "ms": 60_000 }));
    slow["timeoutMs"] = json!(300);
    let read = |server: &str| json!({ "server": server, "uri": uri });
    let no_prompt = json!({ "server": "x", "name": "nothing" });
    let misfit = json!({ "server": "x", "name": prompt, "args": { "no": "such" } });
    let wrong = with(call("x", "add"), json!({ "a": "b" }));
    for (who, method, params, expected) in [
        (&me, "tools.invoke", json!({ "name": "list" }), "native list ok -"),
        (
            &me,
            "tools.invoke",
            with(json!({ "name": "exec" }), exec),
            "native exec denied nobody-to-ask",
        ),
        (&me, "tools.invoke", confirmed, "native exec ok -"),
        (&me, "tools.invoke", json!({ "name": "nothing" }), "- nothing denied unknown-tool"),
        (&me, "mcp.call", ask_echo(), "mcp mcp_asks_echo ok -"),
        (&writer, "mcp.call", ask_echo(), "mcp mcp_asks_echo denied nobody-to-ask"),
        (&me, "mcp.call", wrong, "mcp mcp_x_add invalid-arguments schema"),
        (&me, "mcp.call", call("x", "image"), "mcp mcp_x_image denied policy"),
        (&me, "mcp.call", call("x", "no"), "- no denied unknown-tool"),
        (&me, "mcp.call", call("gone", "no"), "- no unavailable -"),
        (&me, "mcp.call", call("nowhere", "no"), "- no denied unknown-tool"),
        (&me, "mcp.read", read("nowhere"), "- resources/read denied unknown-tool"),
        (&me, "mcp.call", slow, "mcp mcp_x_sleep timed-out -"),
        (&me, "mcp.read", read("x"), "mcp resources/read ok -"),
        (&me, "mcp.read", read("gone"), "- resources/read unavailable -"),
        (&me, "mcp.prompt", no_prompt, "- prompts/get denied unknown-tool"),
        (&me, "mcp.prompt", misfit, "- prompts/get invalid-arguments schema"),
    ] {
        // Some are errors, some are outcomes: only the log is checked.
        let _ = who.ask(method, params.clone()).await;
        audited.expect(&format!("{method} {params}"), expected).await;
    }
    stop(&audited.gateway).await;
}
