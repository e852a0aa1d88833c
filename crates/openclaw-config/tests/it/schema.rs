//! The JSON Schema accepts and rejects the same as the program.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::support::*;

fn validator() -> &'static Validator {
    static VALIDATOR: LazyLock<Validator> =
        LazyLock::new(|| jsonschema::validator_for(&openclaw_config::json_schema()).unwrap());
    &VALIDATOR
}

/// Server entries that both accept.
fn good_servers() -> Vec<Value> {
    vec![
        json!({ "command": "npx", "args": ["-y", "x"], "env": { "A": "b" }, "cwd": "~/x", "inheritEnv": ["A"] }),
        json!({ "command": "a", "workingDirectory": "/x", "connectTimeoutMs": 1, "requestTimeoutMs": 86400000 }),
        json!({ "command": "a", "transport": "stdio", "restartOnCrash": false, "maxRestarts": 0, "lazy": true }),
        json!({ "command": "a", "toolPrefix": "p", "tools": { "allow": ["*"], "deny": [] }, "approval": "never" }),
        json!({ "command": "a", "rateLimit": 0, "maxResultChars": 100, "required": true, "enabled": false }),
        json!({ "command": "a", "timeout": 30000.0, "supportsParallelToolCalls": false, "perClient": true, "codex": { "x": 1 } }),
        json!({ "url": "https://x", "headers": { "A": "b" }, "transport": "sse", "proxy": "none" }),
        json!({ "url": "https://x", "apiKey": "secret://env/A", "tls": { "caFile": "a", "verify": true } }),
        json!({ "url": "https://x", "auth": "oauth", "oauth": { "scope": "a b", "anything": 1 } }),
        json!({ "url": "https://x", "auth": { "clientId": "a", "scopes": [], "redirectPort": 1 }, "transport": "streamable-http" }),
        json!({ "url": "http://localhost:80/x", "headers": { "Authorization": "Bearer secret://env/A" } }),
        json!({ "url": "http://127.0.0.1", "apiKey": "" }),
        json!({ "url": "HTTPS://example.com", "proxy": "socks5://p:1080" }),
        json!({ "url": "http://LOCALHOST/", "auth": { "clientId": "a", "clientSecret": "secret://aws/a#b" } }),
        json!({ "url": "http://u:p@localhost/", "auth": { "authorizationServerUrl": "https://a" } }),
        json!({ "url": "https://x", "auth": { "grantType": "client_credentials", "clientId": "a", "clientSecret": "secret://env/A" } }),
        json!({ "url": "https://x", "auth": { "grantType": "client_credentials", "clientId": "a", "privateKey": "secret://file/k", "signingAlgorithm": "EdDSA" } }),
        json!({ "url": "https://x", "auth": { "clientId": "a", "privateKey": "-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----\n" } }),
        json!({ "url": "https://x", "auth": { "grantType": "jwt_bearer", "assertion": "secret://file//run/token" } }),
        json!({ "url": "https://x", "auth": { "grantType": "jwt_bearer", "assertion": "eyJhbGciOiJub25lIn0.e30." } }),
        json!({ "url": "https://x", "auth": { "grantType": "enterprise", "identityProvider": { "tokenEndpoint": "https://i/t", "clientId": "a", "idToken": "secret://file/t" } } }),
        json!({ "url": "http://127.1/", "headers": { "A": "${A:-x}" } }),
        json!({ "url": "https://x", "toolFilter": { "include": ["a"], "exclude": ["b"] }, "sslVerify": true }),
        json!({ "command": "a", "resources": ["file:///x", "memo:1"], "sampling": true }),
        json!({ "command": "a", "sampling": "always" }),
        json!({ "command": "a", "roots": true, "logLevel": "warning" }),
        json!({ "command": "a", "sampling": { "allow": "ask", "maxTokens": 1000, "requestsPerMinute": 1 } }),
    ]
}

/// Server entries that both reject.
fn bad_servers() -> Vec<Value> {
    vec![
        json!(5),
        json!({ "comand": "a" }),
        json!({ "command": 5 }),
        json!({ "command": "a", "url": "https://x" }),
        json!({ "command": "a", "args": "x" }),
        json!({ "command": "a", "args": [1] }),
        json!({ "command": "a", "env": { "A": 1 } }),
        json!({ "command": "a", "env": ["A"] }),
        json!({ "command": "a", "timeout": 0 }),
        json!({ "command": "a", "timeout": -1 }),
        json!({ "command": "a", "timeout": 1.5 }),
        json!({ "command": "a", "timeout": "30" }),
        json!({ "command": "a", "timeout": 86400001 }),
        json!({ "command": "a", "maxRestarts": -1 }),
        json!({ "command": "a", "lazy": "yes" }),
        json!({ "command": "a", "approval": "sometimes" }),
        json!({ "command": "a", "tools": { "alow": [] } }),
        json!({ "command": "a", "tools": [] }),
        json!({ "url": "https://x", "transport": "websocket" }),
        json!({ "url": "https://x", "auth": "basic" }),
        json!({ "url": "https://x", "auth": { "clientID": "a" } }),
        json!({ "url": "https://x", "auth": { "redirectPort": 70000 } }),
        json!({ "url": "https://x", "tls": { "caFile": 1 } }),
        json!({ "url": "https://x", "toolFilter": { "allow": [] } }),
        json!({ "url": ["https://x"] }),
        json!({ "url": "ftp://x" }),
        json!({ "url": "http://example.com" }),
        json!({ "url": "http://localhost.example.com/" }),
        json!({ "url": "" }),
        json!({ "command": " " }),
        json!({ "command": "a", "transport": "http" }),
        json!({ "url": "https://x", "transport": "stdio" }),
        json!({ "command": "a", "env": { "A=B": "" } }),
        json!({ "command": "a", "env": { "": "" } }),
        json!({ "command": "a", "env": { "A": "secret://nope/x" } }),
        json!({ "command": "a", "env": { "A": "secret://env/" } }),
        json!({ "command": "a", "inheritEnv": ["$A"] }),
        json!({ "command": "a", "toolPrefix": "a b" }),
        json!({ "url": "https://x", "headers": { "a b": "" } }),
        json!({ "url": "https://x", "apiKey": "secret://valt/x" }),
        json!({ "url": "https://x", "headers": { "A": "Bearer secret://nope/x" } }),
        json!({ "url": "https://x", "headers": { "A": "x=secret://env/x" } }),
        json!({ "url": "https://x", "headers": { "A": "b\nc" } }),
        json!({ "url": "https://x", "proxy": "nonsense" }),
        json!({ "url": "https://x", "auth": { "authorizationServerUrl": "ftp://x" } }),
        json!({ "url": "https://x", "auth": { "clientId": "a", "clientSecret": "secret://nope/x" } }),
        json!({ "url": "https://x", "auth": { "grantType": "password" } }),
        json!({ "url": "https://x", "auth": { "clientId": "a", "clientSecret": "secret://env/A", "privateKey": "secret://env/B" } }),
        json!({ "url": "https://x", "auth": { "clientId": "a", "privateKey": "~/key.pem" } }),
        json!({ "url": "https://x", "auth": { "clientId": "a", "privateKey": "secret://nope/x" } }),
        json!({ "url": "https://x", "auth": { "clientId": "a", "privateKey": "secret://env/A", "signingAlgorithm": "HS256" } }),
        json!({ "url": "https://x", "auth": { "grantType": "jwt_bearer", "assertion": "/run/token" } }),
        json!({ "url": "https://x", "auth": { "grantType": "jwt_bearer", "assertion": "" } }),
        json!({ "url": "https://x", "auth": { "grantType": "enterprise", "identityProvider": "https://i" } }),
        json!({ "url": "https://x", "auth": { "grantType": "enterprise", "identityProvider": { "tokenEndpoint": "http://i/t", "clientId": "a", "idToken": "secret://file/t" } } }),
        json!({ "url": "https://x", "auth": { "grantType": "enterprise", "identityProvider": { "tokenEndpoint": "https://i/t", "clientId": "a", "idToken": "token" } } }),
        json!({ "command": "a", "cwd": "" }),
        json!({ "command": "a", "cwd": "/a", "workingDirectory": "/b" }),
        json!({ "command": "a", "timeout": 1, "connectTimeoutMs": 1 }),
        json!({ "command": "a", "resources": ["notes"] }),
        json!({ "command": "a", "resources": "file:///x" }),
        json!({ "command": "a", "sampling": "yes" }),
        json!({ "command": "a", "logLevel": "loud" }),
        json!({ "command": "a", "sampling": { "allow": true } }),
        json!({ "command": "a", "sampling": { "maxTokens": 0 } }),
    ]
}

#[track_caller]
fn agree(config: &Value, accepted: bool) {
    let said = read(&config.to_string());
    let report = said.report.render(Default::default());
    assert_eq!(said.config.is_some(), accepted, "the program on {config}:\n{report}");
    let errors: Vec<String> =
        validator().iter_errors(config).map(|error| error.to_string()).collect();
    assert_eq!(errors.is_empty(), accepted, "the schema on {config}: {errors:?}");
}

#[test]
fn the_schema_is_a_valid_schema_and_describes_every_key() {
    let schema = openclaw_config::json_schema();
    assert!(jsonschema::meta::is_valid(&schema));
    for (name, section) in schema["$defs"].as_object().unwrap() {
        for (key, property) in section["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "`{key}` of {name} has no description");
        }
    }
}

#[test]
fn program_and_schema_accept_the_same_servers() {
    for server in good_servers() {
        agree(&json!({ "mcp": { "servers": { "x": server } } }), true);
        agree(
            &json!({ "agents": { "defaults": { "mcp": { "servers": { "x": server } } } } }),
            true,
        );
        agree(
            &json!({ "plugins": { "entries": { "mcp-client": { "config": { "servers": { "x": server } } } } } }),
            true,
        );
        agree(
            &json!({ "agents": { "list": [{ "id": "a", "mcp": { "servers": { "x": server } } }] } }),
            true,
        );
    }
}

#[test]
fn program_and_schema_reject_the_same_servers() {
    for server in bad_servers() {
        agree(&json!({ "mcp": { "servers": { "x": server } } }), false);
        agree(
            &json!({ "agents": { "entries": { "a": { "mcp": { "servers": { "x": server } } } } } }),
            false,
        );
    }
}

/// What the schema cannot check: it depends on other layers, on variables, or on two keys that may
/// be in different layers.
#[test]
fn the_schema_accepts_what_only_merging_can_tell() {
    for server in [
        json!({}),
        json!({ "enabled": false }),
        json!({ "url": "https://x", "auth": { "clientSecret": "secret://env/A" } }),
        json!({ "url": "https://x", "auth": { "privateKey": "secret://env/A" } }),
        json!({ "url": "https://x", "auth": { "grantType": "client_credentials", "clientId": "a" } }),
        json!({ "url": "https://x", "auth": { "grantType": "jwt_bearer" } }),
        json!({ "url": "https://x", "auth": { "assertion": "secret://env/A" } }),
        json!({ "url": "https://x", "auth": { "grantType": "enterprise", "identityProvider": {} } }),
        json!({ "url": "https://x", "tls": { "clientKey": "a" } }),
    ] {
        let config = json!({ "mcp": { "servers": { "x": server } } });
        assert!(read(&config.to_string()).config.is_none(), "{config}");
        assert!(validator().is_valid(&config), "{config}");
    }
}

#[test]
fn program_and_schema_agree_on_everything_else() {
    for good in [
        json!({}),
        json!({ "channels": { "x": [1] }, "agents": { "defaults": { "heartbeat": 5 } } }),
        json!({ "mcp": { "debug": true, "toolDiscoveryInterval": 0, "maxConcurrentServers": 1 } }),
        json!({ "mcp": { "toolNaming": "{server}__{tool}" } }),
        json!({ "mcp": { "toolNaming": "{tool}_of_{server}" } }),
        json!({ "secrets": { "timeoutMs": 1, "exec": { "pass": { "command": "pass" } }, "providers": {} } }),
        json!({ "secrets": { "vault": { "address": "https://v", "kvVersion": 2 }, "aws": { "region": "x" } } }),
        json!({ "acp": { "maxServers": 0 }, "tools": { "allow": ["a*"], "profile": "x" } }),
        json!({ "agents": { "list": [{ "id": "a", "default": true, "tools": { "deny": ["x"] } }] } }),
        json!({ "agents": { "defaults": { "model": "anthropic/a", "workspace": "~/x", "systemPrompt": "", "maxRounds": 1 } } }),
        json!({ "agents": { "defaults": { "model": { "primary": "offline", "fallbacks": ["a/b/c"] }, "models": {} } } }),
        json!({ "agents": { "entries": { "a": { "approval": { "fallback": "allow", "timeoutMs": 1 }, "toolSearchThreshold": 0 } } } }),
        json!({ "models": { "mode": "merge", "providers": { "x": { "baseUrl": "http://10.0.0.1/v1", "api": "openai-completions", "models": [] } } } }),
        json!({ "models": { "providers": { "x": { "apiKey": "secret://env/A", "headers": { "A": "b" }, "api": "github-copilot" } } } }),
        json!({ "gateway": { "port": 0, "bind": "lan", "auth": { "mode": "token", "token": "x" }, "publicUrl": "https://x/y", "remote": {} } }),
        json!({ "gateway": { "bind": "::1", "allowedOrigins": ["http://localhost:1", "https://x/"], "shutdownGraceMs": 0 } }),
        json!({ "gateway": { "bind": "10.0.0.1", "auth": { "token": "secret://env/A" } } }),
        json!({ "tools": { "web": { "fetch": { "approval": "never", "allowHosts": ["docs.rs", "*.a.b"] } } } }),
        json!({ "tools": { "web": { "fetch": { "allowPrivate": ["a.b", "10.0.0.0/8", "::1", "[::1]"], "maxChars": 100 } }, "fs": { "enabled": false } } }),
        json!({ "models": { "providers": { "x": { "apiKey": { "source": "env", "provider": "default", "id": "A" } } } } }),
        json!({ "tools": { "exec": { "enabled": true, "timeoutMs": 1, "shell": "bash", "host": "x" } } }),
    ] {
        agree(&good, true);
    }
    for bad in [
        json!([]),
        json!({ "mcp": [] }),
        json!({ "mcp": { "servers": [] } }),
        json!({ "mcp": { "servers": { "my server": { "command": "a" } } } }),
        json!({ "mcp": { "servers": { "": { "command": "a" } } } }),
        json!({ "mcp": { "unknown": 1 } }),
        json!({ "mcp": { "maxConcurrentServers": 0 } }),
        json!({ "plugins": { "entries": { "mcp-client": { "enable": true } } } }),
        json!({ "secrets": { "vault": { "kvVersion": 3 } } }),
        json!({ "secrets": { "gcp": { "projct": "x" } } }),
        json!({ "agents": { "list": {} } }),
        json!({ "tools": { "allow": "x" } }),
        json!({ "acp": { "maxTools": -1 } }),
        json!({ "mcp": { "toolNaming": "{server}" } }),
        json!({ "mcp": { "toolNaming": "a b {tool}" } }),
        json!({ "agents": { "list": [{ "name": "x" }] } }),
        json!({ "agents": { "list": [{ "id": "a b" }] } }),
        json!({ "agents": { "entries": { "a b": {} } } }),
        json!({ "secrets": { "exec": { "a": {} } } }),
        json!({ "secrets": { "vault": { "address": "ftp://x" } } }),
        json!({ "secrets": { "gcp": { "endpoint": "x" } } }),
        json!({ "agents": { "defaults": { "model": 5 } } }),
        json!({ "agents": { "defaults": { "model": "claude" } } }),
        json!({ "agents": { "defaults": { "model": { "primary": "a/b", "fallbacks": ["c"] } } } }),
        json!({ "agents": { "defaults": { "workspace": "" } } }),
        json!({ "agents": { "defaults": { "maxParallelTools": 0 } } }),
        json!({ "agents": { "defaults": { "approval": { "fallback": "ask" } } } }),
        json!({ "agents": { "defaults": { "approval": { "timeout": 1 } } } }),
        json!({ "models": { "providers": { "a b": {} } } }),
        json!({ "models": { "providers": { "x": { "baseUrl": "ftp://x" } } } }),
        json!({ "models": { "providers": { "x": { "api": "smoke-signals" } } } }),
        json!({ "models": { "providers": { "x": { "apiKey": "secret://nope/x" } } } }),
        json!({ "models": { "providers": { "x": { "headers": { "a b": "c" } } } } }),
        json!({ "models": { "providers": { "x": { "apiKey": { "source": "exec", "id": "A" } } } } }),
        json!({ "models": { "providers": { "x": { "apiKey": 5 } } } }),
        json!({ "gateway": { "auth": { "token": {} } } }),
        json!({ "gateway": { "port": 65536 } }),
        json!({ "gateway": { "bind": "localhost" } }),
        json!({ "gateway": { "auth": { "mode": "none" } } }),
        json!({ "gateway": { "auth": { "token": "" } } }),
        json!({ "gateway": { "publicUrl": "http://x" } }),
        json!({ "gateway": { "allowedOrigins": ["*"] } }),
        json!({ "gateway": { "allowedOrigins": ["https://x/y"] } }),
        json!({ "tools": { "web": { "fetch": { "allowPrivate": ["http://x"] } } } }),
        json!({ "tools": { "web": { "fetch": { "allowHosts": ["http://x"] } } } }),
        json!({ "tools": { "web": { "fetch": { "approval": "sometimes" } } } }),
        json!({ "tools": { "exec": { "shell": " " } } }),
        json!({ "tools": { "fs": { "enabled": 1 } } }),
    ] {
        agree(&bad, false);
    }
}
