//! The spans of a prompt form one tree, from the front end to the server.

use openclaw_testkit::{ModelServer, Piece, Recording, Script, TestServer, Tool};
use serde_json::{Value, json};

use crate::collector::{Collector, named, only};
use crate::common::gateway::RunningGateway;
use crate::editor::{Editor, Place};

/// A secret that is in the configuration, and that the model passes to a tool.
const CANARY: &str = "canary-5f0e9d31c2";

/// A place with a model that calls two tools of a server, and then answers.
pub(crate) struct Traced {
    pub(crate) place: Place,
    _model: ModelServer,
    pub(crate) collector: Collector,
    pub(crate) recording: Recording,
}

impl Traced {
    pub(crate) fn new() -> Self {
        let model = ModelServer::start(|request| {
            let messages = request["messages"].as_array().unwrap();
            let results = messages.iter().filter(|it| it["role"] == "tool").count();
            match results {
                0 => vec![
                    Piece::call("mcp_box_echo", json!({ "text": CANARY })),
                    Piece::call("mcp_box_broken", json!({})),
                ],
                _ => vec![Piece::text(format!("it is {CANARY}"))],
            }
        });
        let place = Place::with(&json!({}));
        let recording = Recording::at(place.path("box.jsonl"));
        let failed = json!({ "content": [{ "type": "text", "text": CANARY }], "isError": true });
        let echo = Tool::new("echo").result(&json!({
            "content": [{ "type": "text", "text": CANARY }]
        }));
        let script = Script::new()
            .tools([echo, Tool::new("broken").result(&failed)])
            .record(recording.path());
        let file = place.path("box.script.json");
        let (program, args) = TestServer::stdio_from(&file, &script);
        let config = json!({
            "mcp": { "servers": { "box": {
                "command": program, "args": args, "approval": "never",
                "env": { "KEY": "secret://env/CANARY" },
            } } },
            "models": { "providers": { "local": model.entry() } },
            "agents": { "defaults": { "model": { "primary": "local/big" } } },
        });
        std::fs::write(place.path("openclaw.json"), config.to_string()).unwrap();
        let collector = Collector::start();
        Self { place, _model: model, collector, recording }
    }

    pub(crate) fn variables(&self) -> Vec<(&str, &str)> {
        let mut variables = self.collector.variables().to_vec();
        variables.push(("CANARY", CANARY));
        variables
    }

    /// Starts a gateway that sends its spans, too.
    pub(crate) fn gateway(&self) -> RunningGateway {
        let mut command = self.place.command(&["gateway", "run", "--port", "0"]);
        command.envs(self.variables());
        RunningGateway::start(command, self.place.folder.path())
    }

    fn prompt(&self, args: &[&str], more: &[(&str, &str)]) {
        self.prompt_in(args, more, &json!({}));
    }

    /// Like [`prompt`](Self::prompt), with `_meta` in the prompt.
    pub(crate) fn prompt_in(&self, args: &[&str], more: &[(&str, &str)], meta: &Value) {
        let mut variables = self.variables();
        variables.extend(more);
        let mut editor = Editor::spawn_with(&self.place, args, &variables);
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        editor.ask("initialize", hello).unwrap();
        let session = editor.session(&self.place, &[]);
        let prompt = json!([{ "type": "text", "text": "do it" }]);
        let params = json!({ "sessionId": session, "prompt": prompt, "_meta": meta });
        let answer = editor.ask("session/prompt", params).unwrap();
        assert_eq!(answer["stopReason"], "end_turn", "{answer}");
        assert!(editor.text().contains("it is"), "{}", editor.text());
        assert_eq!(editor.close(), 0);
    }

    /// Checks the spans of one prompt, of which there are six.
    fn check(&self) {
        let spans = self.collector.spans(6);
        let root = only(&spans, "session/prompt");
        assert_eq!((root.parent.as_str(), root.kind.as_str()), ("", "SPAN_KIND_SERVER"));
        assert!(spans.iter().all(|span| span.trace == root.trace), "{spans:#?}");
        let turn = only(&spans, "invoke_agent main");
        assert_eq!(turn.parent, root.id);
        assert_eq!(turn.attribute("gen_ai.agent.name"), Some(&json!("main")));
        let requests = named(&spans, "chat big");
        assert_eq!(requests.len(), 2);
        for request in requests {
            assert_eq!((&request.parent, request.kind.as_str()), (&turn.id, "SPAN_KIND_CLIENT"));
            assert_eq!(request.attribute("gen_ai.request.model"), Some(&json!("big")));
            assert_eq!(request.attribute("gen_ai.usage.input_tokens"), Some(&json!("30")));
        }
        let [echo, broken] = ["echo", "broken"].map(|it| only(&spans, &format!("tools/call {it}")));
        for (call, name) in [(echo, "echo"), (broken, "broken")] {
            assert_eq!((&call.parent, call.kind.as_str()), (&turn.id, "SPAN_KIND_CLIENT"));
            assert_eq!(call.attribute("gen_ai.operation.name"), Some(&json!("execute_tool")));
            assert_eq!(call.attribute("gen_ai.tool.name"), Some(&json!(name)));
            assert_eq!(call.attribute("mcp.method.name"), Some(&json!("tools/call")));
            assert_eq!(call.attribute("network.transport"), Some(&json!("pipe")));
            // The server can continue the trace.
            let received = self.recording.of_method("tools/call");
            let received = received.iter().find(|it| it["params"]["name"] == name).unwrap();
            assert_eq!(received["params"]["_meta"]["traceparent"], call.traceparent());
        }
        assert!(!echo.is_error && broken.is_error);
        assert_eq!(broken.attribute("error.type"), Some(&json!("tool_error")));
        // The audit log names the same spans.
        let audit = std::fs::read_to_string(self.place.path("logs/audit.jsonl")).unwrap();
        let audit: Vec<Value> = audit.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        for call in [echo, broken] {
            let of_call = |line: &&Value| line["spanId"] == *call.id;
            assert_eq!(audit.iter().find(of_call).unwrap()["traceId"], *call.trace);
        }
    }
}

#[test]
fn a_prompt_with_two_calls_is_one_tree_without_contents_and_secrets() {
    let traced = Traced::new();
    traced.prompt(&[], &[]);
    traced.check();
    let requests = traced.collector.requests();
    assert_eq!(requests[0]["headers"]["authorization"], "Bearer canary-header");
    let sent: Vec<_> = requests.iter().map(|it| it["request"].to_string()).collect();
    for sent in sent {
        assert!(!sent.contains("canary") && !sent.contains("do it"), "{sent}");
    }
    traced.place.assert_nothing_left();
}

#[test]
fn the_tree_crosses_the_socket_of_a_gateway() {
    let traced = Traced::new();
    let running = traced.gateway();
    traced.prompt(&["--gateway", &running.url], &[]);
    traced.check();
}

#[test]
fn contents_are_sent_only_if_switched_on_and_secrets_never() {
    let traced = Traced::new();
    traced.prompt(
        &[],
        &[
            ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ],
    );
    let spans = traced.collector.spans(6);
    let turn = only(&spans, "invoke_agent main");
    let message = turn.attribute("gen_ai.input.messages").unwrap().as_str().unwrap();
    let message: Value = serde_json::from_str(message).unwrap();
    let text = json!({ "type": "text", "content": "do it" });
    assert_eq!(message, json!([{ "role": "user", "parts": [text] }]));
    let echo = only(&spans, "tools/call echo");
    let arguments = echo.attribute("gen_ai.tool.call.arguments").unwrap().as_str().unwrap();
    assert!(arguments.contains("\"text\"") && !arguments.contains("canary"), "{arguments}");
    assert!(echo.attribute("gen_ai.tool.call.result").is_some());
    let sent: Vec<_> = traced.collector.requests();
    assert!(sent.iter().all(|it| it["headers"]["content-encoding"] == "gzip"), "{sent:?}");
    assert!(!sent.iter().any(|it| it["request"].to_string().contains("canary")), "{sent:?}");
}
