//! Every command at trace level, with a canary in every place where a credential can be, and
//! servers that echo all of them: none appears in any output, log or state file.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use openclaw_testkit::{HttpServer, RpcError, Script, StdioClient, TestServer, Tool};
use serde_json::{Value, json};

use crate::common::gateway::RunningGateway;
use crate::support::Place;

/// Part of every canary.
const MARK: &str = "zq7canary";

fn canary(place: &str) -> String {
    format!("{MARK}-{place}-5up3r")
}

/// The credentials that a local server is started with.
fn of_local_server() -> String {
    ["env", "ref", "file", "arg", "inherited"].map(canary).join(" ")
}

/// A server that echoes its credentials everywhere.
fn echoing(credentials: &str) -> Script {
    let tool = Tool::new("broken").description(format!("Uses {credentials}")).schema(json!({
        "type": "object",
        "properties": {
            "x": { "type": "string", "description": credentials, "default": credentials },
        },
    }));
    let data = Some(json!({ credentials: [credentials] }));
    // Where it cannot be redacted: a credential has no spaces.
    let one = credentials.split(' ').next().unwrap();
    let uri = format!("canary://{one}/x");
    let icons = json!([{ "src": format!("https://example.com/{one}.png") }]);
    let meta = json!({ "x": one, "ui": { "resourceUri": format!("ui://{one}/x.html") } });
    let everywhere = |mut entry: Value| {
        for (name, value) in
            [("title", json!(one)), ("icons", icons.clone()), ("_meta", meta.clone())]
        {
            entry[name] = value;
        }
        entry["description"] = json!(credentials);
        entry
    };
    let schema = json!({ "type": "object" });
    let odd_tools = [
        json!({ "name": one, "inputSchema": schema }),
        json!({ "name": format!("x_{one}_y"), "inputSchema": schema }),
        json!({ "name": "by_property", "inputSchema": { "type": "object", "properties": { one: {} } } }),
        json!({ "name": "by_value", "inputSchema": { "type": "object", "properties": { "x": { "enum": [one] } } } }),
        json!({ "name": "by_meta", "inputSchema": schema, "_meta": { one: 1 } }),
        json!({ "name": "by_result", "inputSchema": schema, "outputSchema": { "type": "object", "required": [one] } }),
        json!({ "name": "invalid", "inputSchema": one }),
        everywhere(json!({ "name": "fine", "inputSchema": schema })),
    ];
    let tools = odd_tools.into_iter().map(Tool::listed_as).chain([tool, Tool::new("echo")]);
    let resource = |uri: &str, name: &str, kind: &str| {
        everywhere(json!({ "uri": uri, "name": name, "mimeType": kind, "size": 1 }))
    };
    let template = |uri: &str, name: &str, kind: &str| {
        everywhere(json!({ "uriTemplate": uri, "name": name, "mimeType": kind }))
    };
    let prompt = |name: &str, argument: &str| {
        let argument = json!({ "name": argument, "title": one, "description": credentials });
        everywhere(json!({ "name": name, "arguments": [argument] }))
    };
    let mut capabilities = json!({
        "tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {},
        "extensions": { "com.example/fine": {}, "com.example/by-value": { "x": { one: 1 } } },
    });
    capabilities["extensions"][format!("com.example/{one}")] = json!({});
    Script::new()
        .capabilities(capabilities)
        .entry("resources", resource(&uri, "by-uri", "text/plain"))
        .entry("resources", resource("canary://name", one, "text/plain"))
        .entry("resources", resource("canary://type", "by-type", &format!("text/{one}")))
        .entry("resources", resource("canary://fine", "fine", "text/plain"))
        .entry("resourceTemplates", template(&format!("{uri}/{{x}}"), "by-uri", "text/plain"))
        .entry("resourceTemplates", template("canary://fine/{x}", one, "text/plain"))
        .entry("resourceTemplates", template("canary://fine/{y}", "fine", "text/plain"))
        .entry("prompts", prompt(one, "x"))
        .entry("prompts", prompt("by-argument", one))
        .entry("prompts", prompt("fine", "x"))
        .completions([one.to_owned(), format!("x {one}")])
        .name(credentials)
        .instructions(credentials)
        .tools(tools)
        .log_notifications()
        .call_error(RpcError { data, ..RpcError::new(-1, credentials) })
}

/// An HTTP server that rejects every request, and echoes it.
fn echo_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || reject(stream));
        }
    });
    port
}

fn reject(mut stream: TcpStream) {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece) {
            Ok(length) if length > 0 => request.extend_from_slice(&piece[..length]),
            _ => return,
        }
    }
    let request = String::from_utf8_lossy(&request);
    let error = json!({ "code": -1, "message": request });
    let (kind, body) = match request.split(['?', ' ']).nth(1) {
        Some("/mcp") | None => ("text/plain", format!("Cannot {request}")),
        Some(_) => ("application/json", json!({ "id": null, "error": error }).to_string()),
    };
    let _ = write!(
        stream,
        "HTTP/1.1 400 Bad Request\r\ncontent-type: {kind}\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
}

struct Scene {
    place: Place,
    _remote: HttpServer,
    port: u16,
}

impl Scene {
    fn new() -> Self {
        let place = Place::new(&[]);
        let local = echoing(&of_local_server()).stderr_line(of_local_server());
        let failing = Script::new().exit_at_start(3).stderr_line(of_local_server());
        let key = canary("key");
        let remote = TestServer::http(&echoing(&key).bearer(&*key, None));
        let port = echo_server();
        fs::write(place.path("secret.txt"), canary("file")).unwrap();
        let scene = Self { place, _remote: remote, port };
        scene.configure(&local, &failing);
        scene
    }

    fn configure(&self, script: &Script, failing: &Script) {
        let port = self.port;
        let stdio = |script: &Script, file: &str| {
            let file = self.place.path(file);
            fs::write(&file, script.to_json()).unwrap();
            // The first two arguments are dropped.
            let mut words = vec!["-c".to_owned(), "shift 2; exec \"$@\"".to_owned()];
            words.extend(["sh".to_owned(), "--token".to_owned(), canary("arg")]);
            words.push(TestServer::program().to_str().unwrap().to_owned());
            words.extend(["stdio".to_owned(), "--script".to_owned()]);
            words.push(file.to_str().unwrap().to_owned());
            json!({
                "command": "sh",
                "args": words,
                "env": {
                    "API_TOKEN": canary("env"),
                    "REFERENCE": "secret://env/CANARY_REF",
                    "FILE": "secret://file/secret.txt",
                },
                "inheritEnv": ["INHERITED_TOKEN"],
                "approval": "never",
            })
        };
        let query = format!("api_key={}&q={}", canary("query"), canary("query"));
        let config = json!({
            "gateway": { "auth": { "token": "${GATEWAY_CANARY}" } },
            "metrics": { "token": canary("scraper") },
            "agents": {
                "defaults": { "model": "mine/model" },
                "list": [
                    { "id": "main" },
                    { "id": "second", "model": "offline" },
                    { "id": "third", "model": "anthropic/claude-sonnet-4-5" },
                ],
            },
            "models": { "providers": { "mine": {
                "api": "openai",
                "baseUrl": format!(
                    "http://user:{}@127.0.0.1:{port}/v1?key={}",
                    canary("model-password"),
                    canary("model-query")
                ),
                "apiKey": canary("model-key"),
                "headers": { "X-Key": canary("model-header") },
            } } },
            "mcp": { "servers": {
                "local": stdio(script, "echoing.script"),
                "failing": stdio(failing, "failing.script"),
                "remote": { "url": self._remote.url(), "apiKey": canary("key") },
                "echoing": {
                    "url": format!("http://user:{}@127.0.0.1:{port}/mcp?{query}", canary("password")),
                    "headers": { "X-Api-Key": format!("Key {}", canary("header")) },
                },
                "with-json": {
                    "url": format!("http://127.0.0.1:{port}/json?{query}"),
                },
                "proxied": {
                    "url": "https://mcp.example.invalid/mcp",
                    "proxy": format!("http://user:{}@127.0.0.1:{port}", canary("proxy")),
                },
                "by-environment": { "url": "https://mcp.example.invalid/mcp" },
            } },
        });
        fs::write(self.place.path("openclaw.json"), config.to_string()).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.place.command(&["--log-level", "trace"]);
        let proxy = format!("http://user:{}@127.0.0.1:{}", canary("env-proxy"), self.port);
        command
            .args(args)
            // An editor that changes nothing.
            .env("VISUAL", "true")
            .env("GATEWAY_CANARY", canary("gateway"))
            .env("CANARY_REF", canary("ref"))
            .env("INHERITED_TOKEN", canary("inherited"))
            .env("ANTHROPIC_API_KEY", canary("anthropic"))
            .env("OPENAI_API_KEY", canary("openai"))
            .env("GEMINI_API_KEY", canary("gemini"))
            .env("HTTPS_PROXY", &proxy)
            .env("ALL_PROXY", proxy.trim_start_matches("http://"));
        command
    }

    /// Runs a command, checks its output, and returns it.
    fn check(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        let said = [&*output.stdout, b"\n", &*output.stderr].concat();
        assert_clean(&said, &format!("{args:?}"));
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Checks everything that a client of the hub can list.
    fn check_hub(&self, options: &[&str]) {
        let args = [&["mcp-server", "--hub"], options].concat();
        let mut hub = StdioClient::run(&mut self.command(&args));
        let capabilities = json!({ "extensions": { "io.modelcontextprotocol/ui": {} } });
        let hello = hub.initialize_with("2025-11-25", &capabilities).to_string();
        // The instructions and extensions are known from earlier runs.
        assert!(
            hello.contains("com.example/fine") && hello.contains("MCP server local"),
            "{hello}"
        );
        assert_clean(hello.as_bytes(), "initialize");
        let reference = json!({ "type": "ref/prompt", "name": "mcp__local__greet" });
        let argument = json!({ "name": "name", "value": "" });
        for (method, params, expected) in [
            ("tools/list", json!({}), "mcp_local_fine"),
            ("resources/list", json!({}), "canary://fine"),
            ("resources/templates/list", json!({}), "canary://fine/{y}"),
            ("prompts/list", json!({}), "mcp__local__fine"),
            ("skills/list", json!({}), "skills"),
            ("completion/complete", json!({ "ref": reference, "argument": argument }), "Grace"),
        ] {
            let answer = hub.request(method, &params).to_string();
            assert!(answer.contains(expected), "{method}: {answer}");
            assert_clean(answer.as_bytes(), method);
        }
    }

    /// Scrapes the running gateway with the scraper's token.
    fn check_metrics(&self) {
        let card = fs::read_to_string(self.place.path("gateway.json")).unwrap();
        let card: Value = serde_json::from_str(&card).unwrap();
        let address = card["url"].as_str().unwrap().trim_start_matches("ws://");
        let mut stream = TcpStream::connect(address.trim_end_matches('/')).unwrap();
        write!(
            stream,
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: Bearer {}\r\n\r\n",
            canary("scraper")
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let text = String::from_utf8_lossy(&answer);
        assert!(text.contains(r#"openclaw_mcp_server_state{server="local""#), "{text}");
        assert_clean(&answer, "/metrics");
    }

    /// Checks all files but those whose purpose is to hold credentials.
    fn check_files(&self) {
        let mut holders = vec!["openclaw.json", "gateway-token", "gateway.json", "secret.txt"];
        holders.extend(["echoing.script", "failing.script"]);
        let mut folders = vec![self.place.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                } else if !holders.iter().any(|name| path.ends_with(name)) {
                    assert_clean(&fs::read(&path).unwrap(), &path.display().to_string());
                }
            }
        }
    }
}

/// Asserts that a text contains no canary, plain or in base64.
fn assert_clean(text: &[u8], what: &str) {
    let in_base64 = (0..3).map(|before| {
        let encoded = BASE64_STANDARD.encode(format!("{}{MARK}xx", &"..."[..before]));
        encoded[4..encoded.len() - 4].to_owned()
    });
    for mark in in_base64.chain([MARK.to_owned()]) {
        let found = text.windows(mark.len()).position(|part| part == mark.as_bytes());
        if let Some(at) = found {
            let from = at.saturating_sub(300);
            let around = String::from_utf8_lossy(&text[from..text.len().min(at + 100)]);
            panic!("{what} contains a canary: …{around}…");
        }
    }
}

/// All commands of the program without subcommands, from its help.
fn all_commands(prefix: &[String]) -> BTreeSet<String> {
    let program = env!("CARGO_BIN_EXE_openclaw");
    let help = Command::new(program).args(prefix).arg("--help").output().unwrap().stdout;
    let help = String::from_utf8(help).unwrap();
    let Some((_, list)) = help.split_once("Commands:\n") else {
        return BTreeSet::from([prefix.join(" ")]);
    };
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next());
    let names = names.filter(|name| *name != "help");
    names.flat_map(|name| all_commands(&[prefix, &[name.to_owned()]].concat())).collect()
}

/// The commands to run, and those that need a running gateway.
const ALONE: &[&[&str]] = &[
    &["config", "validate"],
    &["config", "show"],
    &["--json", "config", "show"],
    &["config", "path"],
    &["config", "schema"],
    &["config", "get", "mcp"],
    &["--json", "config", "get", "mcp.servers"],
    &["config", "set", "gateway.port", "none"],
    &["config", "unset", "mcp.servers.none"],
    &["config", "edit"],
    &["approvals", "list"],
    &["approvals", "show"],
    &["approvals", "allow", "exec", "git", "status"],
    &["approvals", "revoke", "none"],
    &["gateway", "logs"],
    &["gateway", "install", "--dry-run"],
    &["gateway", "uninstall"],
    &["secrets", "set", "none"],
    &["secrets", "check"],
    &["completions", "bash"],
    &["status"],
    &["top"],
    &["--json", "doctor"],
    &["mcp", "servers"],
    &["--log-format", "json", "mcp", "servers"],
    &["--json", "mcp", "tools"],
    &["mcp", "tools", "--schema"],
    &["mcp", "call", "local", "broken"],
    &["--json", "mcp", "call", "remote", "broken"],
    &["mcp", "call", "echoing", "x"],
    &["mcp", "call", "local", "fail", "text=x"],
    &["mcp", "resources"],
    &["--json", "mcp", "resources"],
    &["mcp", "tools", "--schema", "--raw"],
    &["--json", "mcp", "tools", "--raw"],
    &["mcp", "read", "local", "test://none"],
    &["mcp", "prompts"],
    &["--json", "mcp", "prompts"],
    &["mcp", "complete", "local", "greet", "name"],
    &["mcp", "prompt", "local", "none"],
    &["mcp", "complete", "local", "none", "x"],
    &["mcp", "doctor"],
    &["--json", "mcp", "status", "local"],
    &["mcp", "status", "echoing"],
    &["mcp", "status", "proxied"],
    &["mcp", "logs", "local"],
    &["mcp", "logs", "failing"],
    &["mcp", "refresh"],
    &["mcp", "reload"],
    &["mcp", "login", "echoing"],
    &["mcp", "login", "with-json"],
    &["--json", "mcp", "login", "with-json", "--code", "x"],
    &["mcp", "login", "proxied"],
    &["mcp", "login", "by-environment"],
    &["mcp", "logout", "with-json"],
    &["mcp", "client-metadata", "--url", "https://example.com/x.json"],
    &["mcp", "list"],
    &["mcp", "import", "--dry-run"],
    &["agent", "--message", "hi"],
    &["agent", "--agent", "third", "--message", "hi"],
    &["agent", "--agent", "second", "--message", "/call mcp_local_broken {}"],
    &["sessions", "list"],
    &["sessions", "show", "agent:second:main"],
    &["sessions", "export", "agent:second:main"],
    &["demo-server"],
    &["acp"],
    &["mcp-server"],
    &["mcp", "serve", "--verbose"],
    &["mcp", "install", "cursor", "--dry-run"],
    &["mcp", "uninstall", "cursor", "--dry-run"],
    &["chat"],
    &["status", "--gateway", "ws://127.0.0.1:1", "--token", "zq7canary-option-5up3r"],
    &[
        "agent",
        "--message",
        "hi",
        "--gateway",
        "ws://192.0.2.1:1",
        "--token",
        "zq7canary-option-5up3r",
    ],
];
const WITH_GATEWAY: &[&[&str]] = &[
    &["gateway", "status"],
    &["gateway", "token", "create", "--name", "phone", "--scope", "read"],
    &["--json", "gateway", "token", "list"],
    &["gateway", "token", "revoke", "phone"],
    &["--json", "top"],
    &["top", "--count", "1"],
    &["--json", "status"],
    &["mcp", "servers"],
    &["--json", "mcp", "status", "local"],
    &["mcp", "call", "local", "broken"],
    &["agent", "--message", "hi"],
    &["sessions", "list"],
    &["sessions", "delete", "agent:main:main"],
    &["mcp", "login", "with-json"],
    &["mcp", "reload"],
    &["gateway", "start"],
    &["gateway", "restart", "--port", "0"],
    &["gateway", "logs"],
    &["gateway", "stop"],
];

/// Starts a gateway whose log goes to a file.
fn gateway(scene: &Scene, log: &Path) -> RunningGateway {
    let mut command = scene.command(&["gateway", "run", "--port", "0"]);
    let file = fs::File::create(log).unwrap();
    let child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    RunningGateway::of(child, scene.place.folder.path())
}

#[test]
fn no_credential_appears_in_the_output_of_any_command_or_in_its_files() {
    let scene = Scene::new();
    let mut seen = String::new();
    for args in ALONE {
        seen.push_str(&scene.check(args));
    }
    // The servers and the model have echoed their credentials.
    for expected in [
        "HTTP 400: Cannot POST /mcp?api_key=[REDACTED]",
        "POST /json?api_key=[REDACTED]",
        "[data] {",
        // What would give one away is not offered, and the rest is.
        "skipped tool `(unnamed)`: a name, an address or its schema contains a credential",
        "skipped resource template `(unnamed)`",
        "skipped prompt `(unnamed)`",
        "canary://fine",
        "Grace",
    ] {
        assert!(seen.contains(expected), "{expected}");
    }
    for options in [&[][..], &["--no-wrap"]] {
        scene.check_hub(options);
    }
    scene.check_files();

    let mut running = gateway(&scene, &scene.place.path("gateway.log"));
    scene.check(&["mcp", "call", "local", "broken"]);
    for options in [&[][..], &["--no-wrap"]] {
        scene.check_hub(options);
    }
    scene.check_metrics();
    for args in WITH_GATEWAY {
        scene.check(args);
    }
    running.child.wait().unwrap();
    scene.check_files();

    let (env, header) = (format!("T={}", canary("added")), format!("X-Key: {}", canary("added")));
    let url = format!("http://u:{}@127.0.0.1:{}/x?key={}", canary("a"), scene.port, canary("b"));
    scene.check(&["mcp", "add", "one", "--env", &env, "--", "false", "--token", &canary("added")]);
    scene.check(&["mcp", "add", "two", "--url", &url, "--header", &header]);
    scene.check(&["mcp", "connect", &url, "--name", "three"]);
    scene.check(&["mcp", "remove", "one"]);
    let entry = format!(r#"{{"command": "false", "env": {{"T": "{}"}}}}"#, canary("added"));
    scene.check(&["mcp", "add-json", "four", &entry]);
    scene.check(&["mcp", "get", "four"]);
    scene.check(&["mcp", "disable", "four"]);
    scene.check(&["mcp", "enable", "four"]);
    scene.check_files();

    let mut covered: BTreeSet<String> =
        ["mcp add", "mcp connect", "mcp remove", "gateway run"].map(str::to_owned).into();
    covered.extend(["mcp add-json", "mcp get", "mcp disable", "mcp enable"].map(str::to_owned));
    for args in ALONE.iter().chain(WITH_GATEWAY) {
        let words: Vec<&str> = args.iter().copied().filter(|word| *word != "--json").collect();
        covered.extend((1..=words.len().min(3)).map(|length| words[..length].join(" ")));
    }
    let missing: Vec<String> = all_commands(&[]).difference(&covered).cloned().collect();
    assert_eq!(missing, Vec::<String>::new(), "add these commands to this test");
}

#[test]
fn a_generated_gateway_token_appears_nowhere() {
    let scene = Scene::new();
    scene.place.change(|config| config["gateway"] = json!({}));
    let log = scene.place.path("gateway.log");
    let mut running = gateway(&scene, &log);
    let token = fs::read_to_string(scene.place.path("gateway-token")).unwrap();
    for args in WITH_GATEWAY {
        let said = scene.check(args);
        assert!(!said.contains(token.trim()), "{args:?}: {said}");
    }
    running.child.wait().unwrap();
    assert!(!fs::read_to_string(&log).unwrap().contains(token.trim()));
}
