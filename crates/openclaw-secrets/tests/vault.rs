//! Vault: both key-value engines, tokens, AppRole and errors.

#![cfg(feature = "vault")]
#![allow(clippy::expect_used, clippy::panic, reason = "a failing test may panic")]

mod support;

use std::sync::Arc;

use openclaw_secrets::{KvVersion, ResolveErrorKind, SecretSettings, VaultSettings};
use support::{
    Asker, environment, reference, settings,
    vault::{Behaviour, Shared, TOKEN, start},
};
use tokio::sync::Barrier;

async fn vault(behaviour: Behaviour) -> (support::Server, Shared, Asker) {
    let (server, shared) = start(behaviour).await;
    let variables = environment([("VAULT_ADDR", &server.url()), ("VAULT_TOKEN", TOKEN)]);
    let asker = Asker::new(settings(), variables);
    (server, shared, asker)
}

#[tokio::test]
async fn both_versions_of_the_engine_are_read_by_the_path_of_the_command_line() {
    let (_server, shared, vault) = vault(Behaviour::default()).await;
    assert_eq!(vault.value("secret://vault/kv/github#token").await, "kv2-token");
    assert_eq!(vault.value("secret://vault/kv/data/github#token").await, "kv2-token");
    assert_eq!(vault.value("secret://vault/old/github#token").await, "kv1-token");
    let reads = shared.lock().expect("behaviour").reads.clone();
    assert_eq!(reads, ["kv/data/github", "kv/data/github", "old/github"]);
}

#[tokio::test]
async fn a_token_that_may_not_see_the_mounts_still_reads_both_versions() {
    let (_server, _, vault) = vault(Behaviour { hide_mounts: true, ..Behaviour::default() }).await;
    assert_eq!(vault.value("secret://vault/kv/github#token").await, "kv2-token");
    assert_eq!(vault.value("secret://vault/old/github#token").await, "kv1-token");
    for path in ["kv/forbidden", "old/forbidden"] {
        vault.fails(&format!("secret://vault/{path}"), ResolveErrorKind::Denied).await;
    }
    vault.fails("secret://vault/kv/nope", ResolveErrorKind::NotFound).await;
}

#[tokio::test]
async fn a_configured_version_is_not_queried() {
    let (server, shared) = start(Behaviour { hide_mounts: true, ..Behaviour::default() }).await;
    for (version, path) in [(KvVersion::V1, "old/github"), (KvVersion::V2, "kv/github")] {
        let vault = VaultSettings {
            address: Some(server.url()),
            token: Some(TOKEN.into()),
            kv_version: Some(version),
            ..VaultSettings::default()
        };
        let asker = Asker::new(SecretSettings { vault, ..settings() }, environment([]));
        asker.value(&format!("secret://vault/{path}#token")).await;
    }
    assert_eq!(shared.lock().expect("behaviour").reads, ["old/github", "kv/data/github"]);
}

#[tokio::test]
async fn without_a_field_the_only_one_or_value_is_taken() {
    let (_server, _, vault) = vault(Behaviour::default()).await;
    assert_eq!(vault.value("secret://vault/kv/only").await, "kv2-only");
    assert_eq!(vault.value("secret://vault/kv/value").await, "kv2-value");
    assert_eq!(vault.value("secret://vault/kv/types#number").await, "42");
    let error = vault.error("secret://vault/kv/github").await;
    assert_eq!(
        error.to_string(),
        "`secret://vault/kv/github`: the secret has several fields: `token`, `user`"
    );
    let error = vault.fails("secret://vault/kv/github#nope", ResolveErrorKind::NotFound).await;
    assert_eq!(
        error.to_string(),
        "`secret://vault/kv/github#nope`: the secret has no field `nope`; it has `token`, `user`"
    );
}

#[tokio::test]
async fn a_secret_without_fields_is_not_found() {
    let (_server, _, vault) = vault(Behaviour::default()).await;
    for text in ["secret://vault/kv/none", "secret://vault/kv/none#token"] {
        let error = vault.fails(text, ResolveErrorKind::NotFound).await;
        assert_eq!(error.to_string(), format!("`{text}`: the secret has no fields"));
    }
}

#[tokio::test]
async fn error_responses_are_converted_by_kind() {
    let (_server, _, vault) = vault(Behaviour::default()).await;
    for (text, kind, words) in [
        ("secret://vault/kv/nope#x", ResolveErrorKind::NotFound, "not found in Vault"),
        ("secret://vault/kv/deleted#x", ResolveErrorKind::NotFound, "latest version deleted"),
        ("secret://vault/kv/forbidden#x", ResolveErrorKind::Denied, "denied access"),
        ("secret://vault/kv/types#list", ResolveErrorKind::NotText, "not a string"),
        ("secret://vault/kv/types#empty", ResolveErrorKind::Empty, "empty"),
    ] {
        let error = vault.fails(text, kind).await;
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_wrong_token_is_denied_and_appears_nowhere() {
    let (server, _) = start(Behaviour::default()).await;
    let variables =
        environment([("VAULT_ADDR", &server.url()), ("VAULT_TOKEN", "hvs.wrong-token-1")]);
    let asker = Asker::new(settings(), variables);
    let error = asker.fails("secret://vault/kv/github#token", ResolveErrorKind::Denied).await;
    assert!(!format!("{error} {error:?}").contains("wrong-token"));
    assert_eq!(asker.redactor.redact("hvs.wrong-token-1"), "[REDACTED]");
}

#[tokio::test]
async fn a_sealed_or_absent_server_is_unreachable() {
    let (_server, _, sealed) = vault(Behaviour { sealed: true, ..Behaviour::default() }).await;
    let error = sealed.fails("secret://vault/kv/github#token", ResolveErrorKind::Unreachable).await;
    assert!(error.to_string().contains("sealed"), "{error}");

    let (server, _, absent) = vault(Behaviour::default()).await;
    drop(server);
    absent.fails("secret://vault/kv/github#token", ResolveErrorKind::Unreachable).await;
}

#[tokio::test]
async fn missing_settings_are_reported() {
    let asker = Asker::new(settings(), environment([]));
    let error = asker.fails("secret://vault/kv/github", ResolveErrorKind::NotConfigured).await;
    assert_eq!(
        error.hint(),
        Some("set `secrets.vault.address` in the configuration, or `VAULT_ADDR`")
    );
    let variables = environment([("VAULT_ADDR", "http://127.0.0.1:1")]);
    let asker = Asker::new(settings(), variables);
    let error = asker.fails("secret://vault/kv/github", ResolveErrorKind::NotConfigured).await;
    assert!(error.to_string().contains("no Vault token found"), "{error}");
    let variables = environment([
        ("VAULT_ADDR", "https://127.0.0.1:1"),
        ("VAULT_CACERT", "/nope.pem"),
        ("VAULT_TOKEN", TOKEN),
    ]);
    let error = Asker::new(settings(), variables).error("secret://vault/kv/github").await;
    assert!(error.to_string().contains("no readable certificates in `/nope.pem`"), "{error}");
}

#[tokio::test]
async fn the_file_of_vault_login_is_read_every_time() {
    let (server, _) = start(Behaviour::default()).await;
    let home = tempfile::tempdir().expect("home");
    let file = home.path().join(".vault-token");
    std::fs::write(&file, "hvs.stale-token-1\n").expect("write");
    let settings = SecretSettings { home: Some(home.path().to_owned()), ..settings() };
    let asker = Asker::new(settings, environment([("VAULT_ADDR", &server.url())]));
    asker.fails("secret://vault/kv/github#token", ResolveErrorKind::Denied).await;
    std::fs::write(&file, TOKEN).expect("write");
    assert_eq!(asker.value("secret://vault/kv/github#token").await, "kv2-token");
}

#[tokio::test]
async fn the_namespace_is_sent() {
    let behaviour = Behaviour { namespace: Some("team-a"), ..Behaviour::default() };
    let (server, _) = start(behaviour).await;
    let url = server.url();
    let variables =
        [("VAULT_ADDR", url.as_str()), ("VAULT_TOKEN", TOKEN), ("VAULT_NAMESPACE", "team-a")];
    let asker = Asker::new(settings(), environment(variables));
    assert_eq!(asker.value("secret://vault/kv/github#token").await, "kv2-token");
}

#[tokio::test]
async fn a_redirect_from_a_standby_server_is_followed() {
    let (active, _) = start(Behaviour::default()).await;
    let url = active.url();
    let standby = axum::Router::new().fallback(async move |uri: axum::http::Uri| {
        axum::response::Redirect::temporary(&format!("{url}{uri}"))
    });
    let standby = support::Server::start(standby).await;
    let variables = environment([("VAULT_ADDR", &standby.url()), ("VAULT_TOKEN", TOKEN)]);
    let asker = Asker::new(settings(), variables);
    assert_eq!(asker.value("secret://vault/kv/github#token").await, "kv2-token");
}

#[tokio::test]
async fn a_private_certificate_is_trusted_with_a_ca_file() {
    let (router, _) = support::vault::router(Behaviour::default());
    let (server, certificate) = support::tls::start(router).await;
    let address = format!("https://{}", server.address);
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join("ca.pem"), certificate).expect("certificate");
    let vault = VaultSettings {
        address: Some(address),
        token: Some(TOKEN.into()),
        ..VaultSettings::default()
    };
    let trusting = VaultSettings { ca_file: Some("ca.pem".into()), ..vault.clone() };
    let base = || SecretSettings { base_dir: folder.path().to_owned(), ..settings() };

    let asker = Asker::new(SecretSettings { vault: trusting, ..base() }, environment([]));
    assert_eq!(asker.value("secret://vault/kv/github#token").await, "kv2-token");
    let asker = Asker::new(SecretSettings { vault, ..base() }, environment([]));
    let error = asker.fails("secret://vault/kv/github#token", ResolveErrorKind::Unreachable).await;
    assert!(error.to_string().contains("certificate"), "{error}");
}

fn app_role(url: &str, secret_id: &str) -> Asker {
    let variables =
        [("VAULT_ADDR", url), ("VAULT_ROLE_ID", "role-1"), ("VAULT_SECRET_ID", secret_id)];
    Asker::new(settings(), environment(variables))
}

#[tokio::test]
async fn many_secrets_share_one_app_role_login_which_is_renewed_when_rejected() {
    let (server, shared) = start(Behaviour::default()).await;
    let asker = app_role(&server.url(), "secret-id-0123456789");
    let references: Vec<_> =
        (0..8).map(|n| reference(&format!("secret://vault/kv/many/{n}"))).collect();
    let values = asker.resolver.resolve_all(&references).await;
    assert!(values.values().all(Result::is_ok));
    let issued = shared.lock().expect("behaviour").issued.clone();
    assert_eq!(issued.len(), 1);
    assert_eq!(asker.redactor.redact(&issued[0]), "[REDACTED]");

    // The token has expired: the server accepts only another one.
    shared.lock().expect("behaviour").issued.push("revoked".into());
    assert_eq!(asker.value("secret://vault/kv/github#token").await, "kv2-token");
    assert_eq!(shared.lock().expect("behaviour").issued.len(), 3);
}

#[tokio::test]
async fn a_denial_by_policy_causes_no_new_login() {
    for narrow_role in [false, true] {
        let behaviour = Behaviour { narrow_role, hide_mounts: true, ..Behaviour::default() };
        let (server, shared) = start(behaviour).await;
        let asker = app_role(&server.url(), "secret-id-0123456789");
        for _ in 0..3 {
            let error = asker.fails("secret://vault/kv/forbidden", ResolveErrorKind::Denied).await;
            assert!(error.to_string().contains("denied access to this path"), "{error}");
        }
        assert_eq!(shared.lock().expect("behaviour").issued.len(), 1);
    }
}

#[tokio::test]
async fn a_token_without_self_lookup_is_renewed_when_its_lease_has_expired() {
    let behaviour = Behaviour { narrow_role: true, ..Behaviour::default() };
    let (server, shared) = start(behaviour).await;
    let asker = app_role(&server.url(), "secret-id-0123456789");
    asker.value("secret://vault/kv/only").await;
    shared.lock().expect("behaviour").issued.push("revoked".into());
    asker.fails("secret://vault/kv/only", ResolveErrorKind::Denied).await;
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(1200)).await;
    tokio::time::resume();
    assert_eq!(asker.value("secret://vault/kv/only").await, "kv2-only");
}

#[tokio::test]
async fn a_rejected_app_role_login_is_denied() {
    let (server, _) = start(Behaviour::default()).await;
    let asker = app_role(&server.url(), "wrong-secret-id");
    let error = asker.fails("secret://vault/kv/github", ResolveErrorKind::Denied).await;
    assert!(error.to_string().contains("rejected the AppRole login"), "{error}");
}

#[tokio::test]
async fn secrets_are_fetched_side_by_side_and_each_distinct_one_once() {
    // The server responds only after all eight requests have arrived.
    let rendezvous = Some(Arc::new(Barrier::new(8)));
    let (_server, shared, vault) = vault(Behaviour { rendezvous, ..Behaviour::default() }).await;
    let references: Vec<_> =
        (0..24).map(|n| reference(&format!("secret://vault/kv/many/{}", n % 8))).collect();
    let values = vault.resolver.resolve_all(&references).await;
    assert_eq!(values.len(), 8);
    for (reference, value) in values {
        let name = reference.name().trim_start_matches("kv/");
        assert_eq!(value.expect("value").expose(), format!("kv/data/{name}"));
    }
    assert_eq!(shared.lock().expect("behaviour").reads.len(), 8);
}
