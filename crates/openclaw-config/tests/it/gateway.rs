//! The gateway and the built-in tools (G4, G6), and which changes need a restart (C9).

use std::path::Path;
use std::time::Duration;

use openclaw_config::{
    ApprovalPolicy, Bind, EntryChange, RestartCause, RootsSetting, SamplingRule, ServerChange,
};

use crate::support::*;

fn gateway(text: &str) -> String {
    format!("{{ gateway: {text} }}")
}

#[test]
fn the_gateway_listens_on_loopback_by_default() {
    let gateway = good("").gateway;
    assert_eq!((gateway.port, gateway.bind), (18789, Bind::Loopback));
    assert!(gateway.bind.is_loopback() && gateway.token.is_none());
    assert_eq!(gateway.shutdown_grace, Duration::from_secs(10));
}

#[test]
fn all_gateway_settings_are_read() {
    let gateway = good(&gateway(
        "{ port: 0, bind: '::1', auth: { mode: 'token', token: 'secret://env/T' }, publicUrl: 'https://${HOST}/claw',\n\
         allowedOrigins: ['HTTPS://Example.com:443/', 'http://localhost:5173', 'vscode-webview://abc'], shutdownGraceMs: 0,\n\
         controlUi: { enabled: true, root: '/usr/share/control-ui' }, mode: 'local' }",
    ))
    .gateway;
    assert_eq!((gateway.port, gateway.bind.ip()), (0, "::1".parse().unwrap()));
    assert_eq!(gateway.token.unwrap().references().count(), 1);
    assert_eq!(gateway.public_url.unwrap().expose().as_str(), "https://example.com/claw");
    assert_eq!(
        gateway.allowed_origins,
        ["https://example.com", "http://localhost:5173", "vscode-webview://abc"]
    );
    assert_eq!(gateway.shutdown_grace, Duration::ZERO);
    assert_eq!(gateway.control_ui.as_deref(), Some(Path::new("/usr/share/control-ui")));
}

#[test]
fn the_remote_gateway_is_used_only_in_its_mode() {
    let digits = "ab".repeat(32);
    let remote = format!(
        "remote: {{ url: 'wss://far.example:1', token: 'secret://env/T', tlsFingerprint: 'SHA256:{}', \
         transport: 'direct' }}",
        digits.to_uppercase()
    );
    let config = good(&gateway(&format!("{{ mode: 'remote', {remote} }}")));
    assert_eq!(config.secret_references().len(), 1);
    let found = config.gateway.remote.unwrap();
    assert_eq!(found.url.expose().as_str(), "wss://far.example:1/");
    assert_eq!(found.tls_fingerprint, Some(digits));
    assert!(found.token.is_some() && !found.allow_plaintext);
    for local in ["{ mode: 'local', ", "{ "] {
        assert_eq!(good(&gateway(&format!("{local}{remote} }}"))).gateway.remote, None);
    }
    let plain = "remote: { url: 'ws://far.example', allowPlaintext: true }";
    let plain = good(&gateway(&format!("{{ mode: 'remote', {plain} }}"))).gateway.remote;
    assert!(plain.unwrap().allow_plaintext);
    good(&gateway("{ mode: 'remote', remote: { url: 'ws://127.0.0.1:18789' } }"));
}

#[test]
fn bind_takes_words_and_ip_addresses() {
    let bind = |word: &str| good(&gateway(&format!("{{ bind: '{word}' }}"))).gateway.bind;
    assert_eq!((bind("loopback"), bind("auto")), (Bind::Loopback, Bind::Loopback));
    assert_eq!((bind("lan"), bind("all")), (Bind::All, Bind::All));
    assert!(!bind("lan").is_loopback() && bind("127.0.0.2").is_loopback());
    for wrong in ["tailnet", "custom", "localhost", "1.2.3.4:80", " "] {
        bad(&gateway(&format!("{{ bind: '{wrong}' }}")));
    }
}

#[test]
fn invalid_gateway_settings_are_reported() {
    for (wrong, said) in [
        ("{ mode: 'remote' }", "needs the URL of the gateway"),
        ("{ mode: 'remote', remote: { token: 't' } }", "needs the URL of the gateway"),
        ("{ mode: 'both' }", "expected `local` or `remote`"),
        ("{ mode: 'remote', remote: { url: 'https://x' } }", "expected a `wss://` or `ws://` URL"),
        ("{ mode: 'remote', remote: { url: 'wss://u:p@x' } }", "must not have a user"),
        ("{ mode: 'remote', remote: { url: 'ws://10.0.0.1' } }", "would expose the token"),
        ("{ remote: { url: 'ws://far.example' } }", "would expose the token"),
        ("{ remote: { token: '' } }", "this must not be empty"),
        ("{ remote: { tlsFingerprint: 'ab:cd' } }", "expected a SHA-256 fingerprint"),
        ("{ auth: { mode: 'none' } }", "only `token` is supported"),
        ("{ auth: { mode: 'password', password: 'x' } }", "only `token` is supported"),
        ("{ auth: { token: ' ' } }", "this must not be empty"),
        ("{ port: 65536 }", "a whole number from 0 to 65535"),
        ("{ publicUrl: 'http://localhost' }", "only an https URL can be published"),
        ("{ publicUrl: 'https://u:p@x' }", "must not have a user, query or fragment"),
        ("{ publicUrl: 'https://x?a=b' }", "must not have a user, query or fragment"),
        ("{ allowedOrigins: ['*'] }", "expected a web origin"),
        ("{ allowedOrigins: ['https://*.example.com'] }", "expected a web origin"),
        ("{ allowedOrigins: ['https://x/path'] }", "expected a web origin"),
        ("{ allowedOrigins: ['example.com'] }", "expected a web origin"),
    ] {
        assert_says(&bad(&gateway(wrong)), &[said]);
    }
}

#[test]
fn the_token_is_never_displayed() {
    let loaded = read(&gateway("{ auth: { token: 'sesame', mode: 'token' }, prot: 1 }"));
    let said = loaded.report.render(Default::default());
    let config = loaded.config.unwrap();
    let shown = format!("{said}{config:?}{}", serde_json::to_string(&config.origins).unwrap());
    assert!(said.contains("did you mean `port`?") && !shown.contains("sesame"), "{shown}");
}

#[test]
fn built_in_tools_are_enabled_and_bounded_by_default() {
    let tools = good("").native_tools;
    assert!(tools.web_fetch.enabled && tools.exec.enabled && tools.fs.enabled);
    assert!(tools.web_fetch.allow_private.is_empty() && tools.exec.shell.is_none());
    assert_eq!(tools.exec.timeout, Duration::from_secs(60));
    assert_eq!(tools.web_fetch.timeout, Duration::from_secs(30));
    let config = good(
        "{ tools: { allow: ['*'], web: { fetch: { enabled: false, allowPrivate: ['Wiki.local', '10.1.2.3/16', '::1'], maxChars: 500, timeoutMs: 1 }, search: {} },\n\
         exec: { enabled: false, timeoutMs: 2, shell: '/bin/bash' }, fs: { enabled: false, workspaceOnly: true } } }",
    );
    let tools = config.native_tools;
    assert!(!tools.web_fetch.enabled && !tools.exec.enabled && !tools.fs.enabled);
    let hosts: Vec<String> =
        tools.web_fetch.allow_private.iter().map(ToString::to_string).collect();
    assert_eq!(hosts, ["wiki.local", "10.1.0.0/16", "::1/128"]);
    assert_eq!((tools.web_fetch.max_chars, tools.exec.shell.as_deref()), (500, Some("/bin/bash")));
    assert_eq!(config.tools.allow.unwrap(), ["*"]);
    for wrong in ["http://x", "x:80", "10.0.0.0/33", "a b", "*", "2130706433"] {
        let text = format!("{{ tools: {{ web: {{ fetch: {{ allowPrivate: ['{wrong}'] }} }} }} }}");
        assert_says(&bad(&text), &["expected a host name, an IP address or a network"]);
    }
}

#[test]
fn hosts_that_need_no_approval_are_names() {
    let fetch = |text: &str| {
        good(&format!("{{ tools: {{ web: {{ fetch: {text} }} }} }}")).native_tools.web_fetch
    };
    let default = fetch("{}");
    assert!(default.approval == ApprovalPolicy::Auto && default.allow_hosts.is_empty());
    let given = fetch("{ approval: 'never', allowHosts: ['Docs.rs', '*.Example.com'] }");
    assert_eq!(given.approval, ApprovalPolicy::Never);
    assert_eq!(given.allow_hosts, ["docs.rs", "*.example.com"]);
    for wrong in ["https://x", "x:80", "*", "*.", "a*", "a.*.b", "10.0.0.0/8", "10.0.0.1", "a b"] {
        let text = format!("{{ tools: {{ web: {{ fetch: {{ allowHosts: ['{wrong}'] }} }} }} }}");
        assert_says(&bad(&text), &["expected a host name"]);
    }
}

#[test]
fn resources_and_sampling_of_a_server() {
    let plain = server("{ command: 'a' }");
    assert!(plain.options.resources.is_empty() && !plain.connection.sampling);
    let x = server(
        "{ command: 'a', resources: ['file:///notes/${HOST}.md', 'memo:1'], sampling: true }",
    );
    let uris: Vec<&str> = x.options.resources.iter().map(|uri| uri.as_str()).collect();
    assert_eq!(uris, ["file:///notes/example.com.md", "memo:1"]);
    assert_eq!((x.connection.sampling, x.options.sampling.allow), (true, SamplingRule::Ask));
    for wrong in ["notes", "", "a b:c", "file:", "memo:a b"] {
        bad_server(&format!("{{ command: 'a', resources: ['{wrong}'] }}"));
    }
    let config = good("{ mcp: { servers: { x: { command: 'a', resources: ['memo:${NOPE}'] } } } }");
    assert_eq!(config.agents[0].mcp.held_back["x"].unset_variables, ["NOPE"]);
}

#[test]
fn roots_are_the_configured_workspace_of_each_agent() {
    let config = good(
        "{ mcp: { servers: { x: { command: 'a' }, y: { command: 'a', roots: false },
                             z: { command: 'a', roots: true } } },
           agents: { list: [{ id: 'one', workspace: '/one' }, { id: 'two', workspace: '/two' },
                            { id: 'three' }] } }",
    );
    let roots =
        |agent: usize, name: &str| config.agents[agent].mcp.servers[name].connection.roots.clone();
    let workspace = |folder: &str| RootsSetting::Workspace(Some(folder.into()));
    for (agent, folder) in [(0, "/one"), (1, "/two")] {
        assert_eq!(roots(agent, "x"), workspace(folder));
        assert_eq!(roots(agent, "y"), RootsSetting::Hidden);
        assert_eq!(roots(agent, "z"), workspace(folder));
    }
    assert_eq!(roots(2, "x"), RootsSetting::Hidden, "the default workspace is not announced");
    assert_eq!(roots(2, "z"), RootsSetting::Workspace(None));
}

#[test]
fn sampling_is_a_word_a_flag_or_an_object_with_limits() {
    let sampling = |written: &str| {
        let it = server(&format!("{{ command: 'a', sampling: {written} }}")).options.sampling;
        (it.allow, it.max_tokens, it.requests_per_minute.get())
    };
    let (never, ask, always) = (SamplingRule::Never, SamplingRule::Ask, SamplingRule::Always);
    for (written, expected) in [
        ("false", (never, 4_096, 10)),
        ("true", (ask, 4_096, 10)),
        ("'never'", (never, 4_096, 10)),
        ("'always'", (always, 4_096, 10)),
        ("{ maxTokens: 7 }", (never, 7, 10)),
        ("{ allow: 'ask', maxTokens: 1000, requestsPerMinute: 3 }", (ask, 1_000, 3)),
    ] {
        assert_eq!(sampling(written), expected, "{written}");
    }
    for wrong in ["'yes'", "1", "{ allow: true }", "{ maxTokens: 0 }", "{ tokens: 1 }", "[]"] {
        bad_server(&format!("{{ command: 'a', sampling: {wrong} }}"));
    }
    let layered = good(
        "{ mcp: { servers: { x: { command: 'a', sampling: { allow: 'always', maxTokens: 9 } } } },\n\
         agents: { defaults: { mcp: { servers: { x: { sampling: 'ask' } } } } } }",
    );
    let it = layered.agents[0].mcp.servers["x"].options.sampling;
    assert_eq!(
        (it.allow, it.max_tokens),
        (ask, 9),
        "a later layer overrides only the fields it sets"
    );
}

#[test]
fn a_diff_reports_only_the_parts_that_changed() {
    let old =
        "mcp: { servers: { s: { command: 'a' } } }, models: { providers: { a: {}, b: {}, c: {} } }";
    let base = good(&format!("{{ {old}, agents: {{ list: [ {{ id: 'x' }}, {{ id: 'y' }} ] }} }}"));
    let same = good(&format!(
        "{{ {old}, agents: {{ list: [ {{ id: 'x', maxRounds: 50 }}, {{ id: 'y' }} ] }}, gateway: {{ port: 18789, bind: 'auto' }}, tools: {{}}, acp: {{}} }}"
    ));
    assert!(base.diff(&same).is_empty(), "{:?}", base.diff(&same));

    let new = good(
        "{ mcp: { servers: { s: { command: 'a' }, t: { command: 't' } } }, models: { providers: { a: {}, b: { apiKey: '$TOKEN' }, d: {} } },\n\
         agents: { list: [ { id: 'x', model: 'a/m' }, { id: 'z' } ] }, tools: { exec: { enabled: false } }, secrets: { timeoutMs: 1 } }",
    );
    let changes = base.diff(&new);
    assert!(!changes.is_empty());
    assert_eq!(changes.agents["x"].settings, EntryChange::Changed);
    assert_eq!(changes.agents["x"].servers["s"], ServerChange::Same);
    assert_eq!(changes.agents["x"].servers["t"], ServerChange::Added);
    assert_eq!(changes.agents["y"].settings, EntryChange::Removed);
    assert_eq!(changes.agents["y"].servers["s"], ServerChange::Removed);
    assert_eq!(changes.agents["z"].settings, EntryChange::Added);
    let models: Vec<EntryChange> = changes.models.values().copied().collect();
    assert_eq!(
        models,
        [EntryChange::Same, EntryChange::Changed, EntryChange::Removed, EntryChange::Added]
    );
    assert!(changes.tools && changes.secrets && changes.agent_order);
    assert!(!changes.gateway && !changes.acp && changes.needs_restart().is_empty());
}

#[test]
fn only_port_address_and_token_need_a_restart() {
    let base = good("");
    let cause = |text: &str| {
        let changes = base.diff(&good(&gateway(text)));
        assert!(changes.gateway, "{text}");
        changes.needs_restart().to_vec()
    };
    assert_eq!(cause("{ port: 1 }"), [RestartCause::Port]);
    assert_eq!(cause("{ bind: 'lan' }"), [RestartCause::Bind]);
    assert_eq!(cause("{ auth: { token: 'secret://env/T' } }"), [RestartCause::Token]);
    assert_eq!(cause("{ port: 1, bind: 'lan' }").len(), 2);
    for taken_over in [
        "{ allowedOrigins: ['https://x'] }",
        "{ shutdownGraceMs: 1 }",
        "{ tools: { deny: ['x'] } }",
    ] {
        assert_eq!(cause(taken_over), [], "{taken_over}");
    }
    assert_eq!(RestartCause::Token.key(), "gateway.auth.token");
    let metrics = |text: &str| {
        let changes = base.diff(&good(&format!("{{ metrics: {text} }}")));
        assert!(changes.metrics, "{text}");
        changes.needs_restart().to_vec()
    };
    assert_eq!(metrics("{ enabled: false }"), []);
    assert_eq!(metrics("{ enabled: true, token: 'secret://env/T' }"), []);
}
