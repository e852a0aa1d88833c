//! Valid and invalid files, as users write them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::*;
use openclaw_config::{
    HttpFlavour, LoadEnvironment, ProtocolVersion, Severity, Transport, load_text,
};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

#[test]
fn the_example_with_defaults_and_a_list_of_agents_loads_as_it_stands() {
    let config = read_file(&fixture("defaults-and-list.json")).config.unwrap();
    let research = config.agent(Some("research")).unwrap();
    let names: Vec<&str> = research.mcp.servers.keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["filesystem", "linkedin"]);
    // `TAVILY_API_KEY` is not set here.
    assert_eq!(research.mcp.held_back["tavily"].unset_variables, ["TAVILY_API_KEY"]);
    let references = config.secret_references();
    let references: Vec<String> = references.keys().map(ToString::to_string).collect();
    assert_eq!(references, ["secret://gcp/linkedin-email", "secret://gcp/linkedin-password"]);
}

#[test]
fn the_example_of_the_plugin_loads_as_it_stands() {
    let loaded = read_file(&fixture("plugin.json"));
    let config = loaded.config.unwrap();
    assert_eq!(config.agents[0].mcp.servers.len(), 4);
    let Transport::Http(corp) =
        &config.agents[0].mcp.servers["private-corp-server"].connection.transport
    else {
        panic!("not http")
    };
    assert_eq!(corp.oauth.client_id.as_deref(), Some("openclaw-prod"));
    assert_eq!(corp.oauth.scopes.as_deref().unwrap(), ["read", "write"]);
    let warnings = loaded.report.count(Severity::Warning);
    assert_eq!(warnings, 2, "one for each server with a plaintext credential (K4)");
}

#[test]
fn a_file_of_the_node_openclaw_loads_as_it_stands() {
    let loaded = read_file(&fixture("node-openclaw.json"));
    let said = loaded.report.render(Default::default());
    let config = loaded.config.unwrap_or_else(|| panic!("{said}"));
    assert_says(&said, &["note: `codex` has no effect here"]);
    assert_eq!(loaded.report.count(Severity::Warning), 0, "{said}");
    assert_eq!(config.agents[0].id.as_str(), "main", "the default agent comes first");
    assert_eq!(config.gateway_tools.deny, ["exec"]);
    assert_eq!((config.gateway.port, config.gateway.token.is_some()), (18789, true));
    assert_eq!(config.agents[1].model.as_ref().unwrap().primary.as_str(), "anthropic/claude");
    let workspace = Path::new("/home/user/.openclaw/workspace");
    assert_eq!(config.agents[1].workspace.as_deref(), Some(workspace));

    let servers = &config.agents[0].mcp.servers;
    let docs = &servers["docs"];
    assert_eq!(docs.options.timeout, Duration::from_secs(10));
    assert_eq!(docs.options.tool_timeout, Duration::from_secs(20));
    assert!(!docs.options.supports_parallel_tool_calls);
    assert_eq!(docs.options.tools.allow.as_deref().unwrap(), ["search*"]);
    assert_eq!(docs.options.tools.deny, ["search_all"]);

    let Transport::Http(crm) = &servers["crm"].connection.transport else { panic!("not http") };
    assert_eq!(crm.flavour, HttpFlavour::Streamable);
    assert_eq!(crm.oauth.redirect_port, Some(4711));
    assert_eq!(crm.oauth.scopes.as_deref().unwrap(), ["read", "write"]);
    assert_eq!(crm.tls.client_cert.as_deref(), Some(fixture("certs/me.pem").as_path()));

    assert!(!servers["files"].enabled);
    let Transport::Stdio(files) = &servers["files"].connection.transport else {
        panic!("not stdio")
    };
    assert_eq!(files.cwd.as_deref(), Some(Path::new("/home/user/files")));
}

#[test]
fn the_examples_in_the_documentation_load() {
    let folder = tempfile::tempdir().unwrap();
    for included in ["work.json", "home.json"] {
        std::fs::write(folder.path().join(included), "{}").unwrap();
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(page).unwrap();
    let examples = page.split("```json5\n").skip(1).filter_map(|rest| rest.split("```").next());
    let environment = LoadEnvironment {
        variable: &|name| (name == "HOME").then(|| "/home/user".to_owned()),
        home: Some(Path::new("/home/user")),
    };
    let mut count = 0;
    for example in examples {
        let loaded = load_text(&folder.path().join("openclaw.json"), example, environment);
        assert_eq!(loaded.report.render(Default::default()), "", "{example}");
        count += 1;
    }
    assert!(count > 5, "the page has {count} examples");
}

#[test]
fn all_of_json5_is_understood() {
    let server = server(
        "{ 'command': 'a\\\nb', args: [\"\\x41\", 'it\\'s',], timeout: 0x7530, toolTimeout: +6e4, \
           maxRestarts: 3., /* c */ lazy: true, }",
    );
    let Transport::Stdio(stdio) = server.connection.transport else { panic!("not stdio") };
    assert_eq!(stdio.command.as_str(), "ab");
    assert_eq!(stdio.args.iter().collect::<Vec<_>>(), ["A", "it's"]);
    assert_eq!(server.options.timeout, Duration::from_secs(30));
    assert_eq!(server.options.tool_timeout, Duration::from_secs(60));
    assert_eq!(server.options.max_restarts, 3);
}

#[test]
fn a_missing_file_is_no_error() {
    let loaded = read_file(Path::new("/nonexistent/openclaw.json"));
    let config = loaded.config.unwrap();
    assert_eq!(config.file, None);
    assert_eq!(config.agents[0].id.as_str(), "main");
    assert!(loaded.report.diagnostics().is_empty());
}

#[test]
fn an_empty_file_and_a_byte_order_mark_are_no_errors() {
    good("");
    good("// nothing but a comment");
    let said = bad("\u{feff}{ mcp: 1 }");
    assert_says(
        &said,
        &["openclaw.json:1:8", "expected the MCP settings (an object), found a number"],
    );
}

#[test]
fn unreadable_files_are_reported_with_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let said = |file: &Path| {
        let loaded = read_file(file);
        assert!(loaded.config.is_none());
        loaded.report.render(Default::default())
    };
    assert_says(&said(folder.path()), &["is a folder, not a file"]);

    let file = folder.path().join("big.json");
    std::fs::File::create(&file).unwrap().set_len(50 * 1024 * 1024).unwrap();
    assert_says(&said(&file), &["big.json", "larger than 8 MiB"]);

    std::fs::write(&file, b"{ \"a\": \"\xff\" }").unwrap();
    assert_says(&said(&file), &["not UTF-8", "byte 8"]);
    std::fs::write(&file, b"\xff\xfe{\0}\0").unwrap();
    assert_says(&said(&file), &["UTF-16"]);
}

#[test]
fn syntax_errors_are_shown_with_position_and_advice() {
    assert_says(&bad("{ a: 1 b: 2 }"), &["openclaw.json:1:7", "missing comma"]);
    assert_says(&bad("{ a 1 }"), &["missing colon after the key"]);
    assert_says(&bad("{ mcp: {\n  servers: {"), &["unclosed object", "add the missing `}`"]);
    assert_says(&bad("{ a: 'b\n }"), &["unclosed string"]);
    assert_says(&bad("{} {}"), &["text after the end"]);
    assert_says(&bad("{ a: /* b }"), &["unclosed comment"]);
    assert_says(&bad("[]"), &["expected a configuration (an object), found an array"]);
    assert_says(&bad("{ a: b }"), &["invalid JSON5", "openclaw.json:1:6"]);
}

#[test]
fn deep_nesting_is_refused_and_overflows_nothing() {
    for (open, close) in [("[", "]"), ("{a:", "}")] {
        let deep = format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
        assert_says(&bad(&deep), &["nested too deeply"]);
    }
}

#[test]
fn all_problems_are_reported_at_once_in_the_order_of_the_file() {
    let loaded = read(
        "{ mcp: { servers: {\n a: { command: 1 },\n b: { url: 'ftp://x' },\n c: { comand: 'x' } },\n debug: 'no' } }",
    );
    let lines: Vec<usize> = loaded
        .report
        .diagnostics()
        .iter()
        .map(|found| loaded.report.location(found).unwrap().line)
        .collect();
    assert_eq!(lines, [2, 3, 4, 5]);
}

#[test]
fn everything_in_an_entry_is_checked_whatever_else_is_wrong_with_it() {
    let said = bad_server(
        "{ command: 'x', url: 'https://y', toolPrefix: 'a b', env: { A: 'secret://nope/x' } }",
    );
    assert_says(
        &said,
        &[
            "both `command` and `url`",
            "a prefix may only contain",
            "unknown secret provider `nope`",
        ],
    );
    let said = bad_server("{ command: '${UNSET}', toolPrefix: 'a b', headers: { 'a b': '' } }");
    assert_says(&said, &["a prefix may only contain", "invalid HTTP header name"]);
    let said = bad("{ mcp: { servers: { fs: {}, fs2: { comand: 'x' } } } }");
    assert_says(&said, &["MCP server `fs` has neither", "did you mean `command`?"]);
    assert!(!said.contains("`fs2` has neither"), "{said}");
    let said = bad("{ mcp: { servers: [] } }");
    assert_eq!(said.matches("error:").count(), 1, "{said}");
}

#[test]
fn a_held_back_server_still_shows_its_settings_and_secrets() {
    let config = good(
        "{ mcp: { servers: { a: { command: '${UNSET}', timeout: 5, env: { T: 'secret://env/TTT' } } } } }",
    );
    let settings = &config.agents[0].mcp.origins.servers["a"];
    assert!(settings.iter().any(|setting| setting.key == "timeout" && setting.value == 5));
    let references = config.secret_references();
    assert_eq!(references.values().next().unwrap().iter().next().unwrap(), "a.env.T");
}

#[test]
fn many_mistakes_are_reported_in_reasonable_time() {
    let servers: String = (0..4_000).map(|number| format!("s{number}: {{}},")).collect();
    let loaded = read(&format!("{{ mcp: {{ servers: {{ {servers} }} }} }}"));
    assert_eq!(loaded.report.diagnostics().len(), 4_000);
    assert_says(
        &loaded.report.render(Default::default()),
        &["(and 3950 more; `--json` lists all)"],
    );
}

#[cfg(unix)]
#[test]
fn a_pipe_without_a_writer_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let said = |file: &Path| read_file(file).report.render(Default::default());
    assert_says(&said(&pipe), &["is a pipe or a device, not a file"]);
    let main = folder.path().join("openclaw.json");
    std::fs::write(&main, "{ $include: 'pipe' }").unwrap();
    assert_says(&said(&main), &["cannot include `pipe`: not a file"]);
}

#[test]
fn unknown_keys_are_errors_in_our_sections_and_the_nearest_key_is_named() {
    let said = bad_server("{ comand: 'npx' }");
    assert_says(&said, &["did you mean `command`?", "mcp.servers.x.comand", "openclaw.json:1:26"]);
    assert!(!said.contains("neither"), "reported a second time:\n{said}");
    assert_says(&bad_server("{ command: 'a', endpoint: 'b' }"), &["use `url`"]);
    assert_says(&bad("{ mcp: { sevrers: {} } }"), &["did you mean `servers`?"]);
}

#[test]
fn unknown_keys_elsewhere_are_left_alone() {
    let said =
        doubtful("{ channels: { x: 1 }, agents: { defaults: { heartbeat: 'm' } }, theme: 'dark' }");
    assert_eq!(said, "");
    let said = doubtful("{ mpc: { servers: {} } }");
    assert_says(&said, &["warning: unknown setting `mpc`, ignored", "did you mean `mcp`?"]);
}

#[test]
fn servers_pasted_from_another_program_are_read_with_a_note() {
    let text = "{ mcpServers: {
        a: { type: 'stdio', command: 'npx', args: ['-y', 'a'], disabled: true },
        b: { type: 'streamable-http', url: 'https://b.example/mcp', autoApprove: ['x'] },
        c: { type: 'sse', serverUrl: 'https://c.example/sse' },
        d: { command: 'd' },
    }, mcp: { servers: { d: { command: 'other' } } } }";
    let said = doubtful(text);
    assert_says(&said, &["note: `mcpServers` is read as `mcp.servers`", "this list has no effect"]);
    let servers = &good(text).agents[0].mcp.servers;
    let gist = |name: &str| servers.get(name).unwrap().gist();
    assert!(!servers.get("a").unwrap().enabled);
    assert_eq!([gist("a"), gist("d")], ["npx -y a", "other"]);
    let flavour = |name: &str| match &servers.get(name).unwrap().connection.transport {
        Transport::Http(http) => http.flavour,
        Transport::Stdio(_) => panic!("{name} is a process"),
    };
    assert_eq!([flavour("b"), flavour("c")], [HttpFlavour::Streamable, HttpFlavour::Sse]);
    let said = bad_server("{ type: 'stdio', url: 'https://a.example' }");
    assert_says(&said, &["transport `stdio` needs `command`, but the server has `url`"]);
    let said = bad_server("{ command: 'a', enabled: true, disabled: true }");
    assert_says(&said, &["both this and `enabled` are set"]);
}

#[test]
fn a_protocol_version_is_pinned_for_a_server() {
    let pinned = server("{ command: 'a', protocolVersion: '2025-06-18' }").connection;
    assert_eq!(pinned.protocol_version, Some(ProtocolVersion::V20250618));
    assert_eq!(server("{ command: 'a' }").connection.protocol_version, None);
    let said = bad_server("{ command: 'a', protocolVersion: '2025-06-19' }");
    assert_says(&said, &["expected one of 2024-11-05", "did you mean `2025-06-18`?"]);
}

#[test]
fn a_duplicate_key_is_an_error_that_shows_both_places() {
    let said = bad("{ mcp: { servers: {\n x: { command: 'a' },\n x: { command: 'b' } } } }");
    assert_says(&said, &["duplicate key `x`", "first here", "again here"]);
    let said = bad_server("{ command: 'a', cwd: '/a', workingDirectory: '/b' }");
    assert_says(&said, &["`workingDirectory` and `cwd` mean the same"]);
    let said =
        bad_server("{ command: 'a', tools: { allow: ['a'] }, toolFilter: { include: ['b'] } }");
    assert_says(&said, &["both this and `tools.allow` are set"]);
}

#[test]
fn invalid_server_names_are_rejected_with_a_suggestion() {
    let named =
        |name: &str| bad(&format!("{{ mcp: {{ servers: {{ {name:?}: {{ command: 'a' }} }} }} }}"));
    assert_says(&named("../../x"), &["invalid server name", "use `x`"]);
    assert_says(&named("my server"), &["use `my-server`", r#"mcp.servers["my server"]"#]);
    assert_says(&named("🦀"), &["invalid server name"]);
    assert_says(&named(""), &["a name must not be empty"]);
}

#[test]
fn addresses_are_https_or_on_this_machine() {
    for url in
        ["https://example.com/mcp", "http://localhost:1", "http://127.0.0.9", "http://[::1]:2/x"]
    {
        server(&format!("{{ url: {url:?} }}"));
    }
    assert_says(&bad_server("{ url: 'ftp://example.com' }"), &["only https URLs are allowed"]);
    assert_says(
        &bad_server("{ url: 'http://example.com' }"),
        &["only https is allowed", "use https"],
    );
    assert_says(&bad_server("{ url: 'http://localhost.evil.com' }"), &["only https is allowed"]);
    assert_says(&bad_server("{ url: 'example.com' }"), &["not a URL"]);
    assert_says(&bad_server("{ url: '' }"), &["must not be empty"]);
}

#[test]
fn a_server_has_either_a_command_or_an_address() {
    assert_says(&bad_server("{ command: 'a', url: 'https://x' }"), &["both `command` and `url`"]);
    assert_says(&bad_server("{ args: ['a'] }"), &["neither `command` nor `url`"]);
    let said = bad_server("{ command: 'a', transport: 'http' }");
    assert_says(&said, &["transport `http` needs `url`, but the server has `command`"]);
    assert_says(&bad_server("{ url: 'https://x', transport: 'stdio' }"), &["needs `command`"]);
    assert_says(&bad_server("{ url: 'https://x', transport: 'htp' }"), &["did you mean `http`?"]);
}

#[test]
fn numbers_out_of_range_are_refused() {
    for number in ["-1", "1.5", "0", "1e99", "NaN", "Infinity", "99999999999999999999"] {
        let said = bad_server(&format!("{{ command: 'a', timeout: {number} }}"));
        assert_says(&said, &["expected a whole number from 1 to 86400000", number]);
    }
    assert_says(
        &bad_server("{ command: 'a', timeout: '30' }"),
        &["expected a whole number", "a string"],
    );
}

#[test]
fn an_environment_value_that_is_a_number_is_refused_without_showing_it() {
    let said = bad_server("{ command: 'a', env: { PIN: 4711 } }");
    assert_says(
        &said,
        &["expected a string, found a number", "put it in quotes", "mcp.servers.x.env.PIN"],
    );
    assert!(!said.contains("4711"), "{said}");
}

#[test]
fn wrong_references_to_secrets_are_refused() {
    let said = bad_server("{ command: 'a', env: { A: 'secret://nope/x', B: 'secret://env/' } }");
    assert_says(&said, &["unknown secret provider `nope`", "missing secret name", "env.B"]);
}

#[test]
fn an_unset_variable_holds_only_its_server_back() {
    let loaded = read(
        "{ mcp: { servers: { a: { url: 'https://${NOPE}/mcp' }, b: { command: '${TOKEN}' },\n\
         c: { command: 'c', enabled: false, args: ['$NOPE'] } } } }",
    );
    let said = loaded.report.render(Default::default());
    let mcp = &loaded.config.unwrap().agents[0].mcp;
    assert_eq!(mcp.held_back["a"].unset_variables, ["NOPE"]);
    assert!(mcp.servers.contains_key("b"));
    assert_says(
        &said,
        &["`NOPE` is not set", "MCP server `a` cannot start without it", "openclaw.json:1:31"],
    );
    assert_eq!(loaded.report.count(Severity::Warning), 1, "a disabled server is not reported");
}

#[test]
fn an_unset_variable_elsewhere_is_an_error() {
    let said = bad("{ secrets: { gcp: { project: '${NOPE}' } } }");
    assert_says(&said, &["`NOPE` is not set", "secrets.gcp.project"]);
    assert_says(&bad_server("{ command: '${TOKEN' }"), &["`${` without a `}`"]);
}

#[test]
fn plaintext_credentials_are_warned_of_once_a_server() {
    let warning =
        "MCP server 'x' has plaintext credentials in config — consider using secret:// references";
    let entry = |entry: &str| doubtful(&format!("{{ mcp: {{ servers: {{ x: {entry} }} }} }}"));
    let said = entry("{ command: 'a', env: { API_KEY: 'k', DB_PASSWORD: 'p' } }");
    assert_eq!(said.matches(warning).count(), 1, "{said}");
    assert_says(&entry("{ url: 'https://x', apiKey: 'k' }"), &[warning]);
    assert_says(&entry("{ url: 'https://x', headers: { Authorization: 'Bearer k' } }"), &[warning]);
    for fine in [
        "{ command: 'a', env: { API_KEY: '${TOKEN}', LOG: 'debug' } }",
        "{ url: 'https://x', apiKey: 'secret://env/K' }",
        "{ url: 'https://x', headers: { Authorization: 'Bearer secret://env/K' } }",
    ] {
        assert_eq!(entry(fine), "");
    }
}

#[test]
fn contradictions_between_fields_are_found() {
    let said = bad_server(
        "{ url: 'https://x', apiKey: 'secret://env/A', headers: { authorization: '${TOKEN}' } }",
    );
    assert_says(&said, &["`apiKey` sets the `Authorization` header, too"]);
    let said = bad_server("{ url: 'https://x', headers: { 'X-A': '$TOKEN', 'x-a': '$TOKEN' } }");
    assert_says(&said, &["are the same"]);
    for (entry, said) in [
        ("{ url: 'https://x', headers: { 'a b': '' } }", "invalid HTTP header name"),
        ("{ url: 'https://x', headers: { a: 'b\\nc' } }", "a header must be a single line"),
        ("{ command: 'a', env: { 'A=B': '' } }", "must not be empty or contain `=`"),
        ("{ command: 'a', inheritEnv: ['$HOME'] }", "invalid variable name"),
        ("{ url: 'https://x', auth: { clientSecret: 'secret://env/A' } }", "needs a client id"),
        ("{ url: 'https://x', tls: { clientKey: 'k' } }", "needs a client certificate"),
        ("{ url: 'https://x', auth: 'basic' }", "expected the OAuth settings"),
        ("{ url: 'https://x', proxy: 'nonsense' }", "invalid proxy URL"),
        ("{ command: 'a', toolPrefix: 'a b' }", "a prefix may only contain"),
    ] {
        assert_says(&bad_server(entry), &[said]);
    }
    assert_says(
        &bad_server("{ command: 'a', tools: { deny: ['[a'] } }"),
        &["invalid pattern", "tools.deny[0]"],
    );
    assert_says(&bad("{ gateway: { tools: { allow: ['a{b'] } } }"), &["invalid pattern"]);
    assert_says(
        &bad("{ mcp: { toolNaming: '{server}' } }"),
        &["a naming template must contain `{tool}`"],
    );
    let said = doubtful("{ mcp: { servers: { x: { command: 'a', headers: {} } } } }");
    assert_says(&said, &["`headers` has no effect on a local process"]);
    let said =
        doubtful("{ mcp: { servers: { x: { url: 'https://x', tls: { verify: false } } } } }");
    assert_says(&said, &["certificate verification is off for MCP server `x`"]);
}

#[test]
fn no_message_shows_a_credential() {
    let text = "{ mcp: { servers: { x: { command: 'a', oops: 1, apiKey: 'sesame-1', env: { A: 'sesame-2', 'B=': 'sesame-3' },\n\
                headers: { 'X-Y': 'sesame-4', Z: ['sesame-5'] }, url: 'ftp://u:sesame-6@h?k=sesame-7', auth: { clientSecret: { a: 'sesame-8' } } } } } }";
    let loaded = read(text);
    let shown = [
        loaded.report.render(Default::default()),
        loaded.report.to_json().to_string(),
        format!("{loaded:?}"),
    ];
    for shown in shown {
        assert!(!shown.contains("sesame"), "{shown}");
    }
    let broken = bad("{ mcp: { servers: { x: { env: { A: 'sesame-1' B: 'sesame-2' } } } } }");
    assert!(!broken.contains("sesame"), "{broken}");
}
