//! The OAuth settings of a server.

use openclaw_config::{
    DpopSetting, OAuthGrant, OAuthSettings, ServerChange, ServerConfig, Severity, Transport,
};

use crate::support::*;

fn entry(auth: &str) -> String {
    format!("{{ url: 'https://x', auth: {auth} }}")
}

/// The report about invalid OAuth settings.
#[track_caller]
fn refused(auth: &str) -> String {
    bad_server(&entry(auth))
}

/// Checks that there is exactly one error, and that the report has these parts.
#[track_caller]
fn refused_once(auth: &str, parts: &[&str]) {
    let said = refused(auth);
    assert_says(&said, parts);
    assert_eq!(said.matches("error:").count(), 1, "{said}");
}

fn oauth(server: ServerConfig) -> OAuthSettings {
    let Transport::Http(http) = server.connection.transport else { panic!("not http") };
    http.oauth
}

const ENTERPRISE: &str = "{ grantType: 'enterprise', identityProvider: { \
    tokenEndpoint: 'https://login.example.com/token', clientId: 'desk', \
    clientSecret: 'secret://env/IDP_SECRET', idToken: 'secret://file/id-token' } }";

#[test]
fn a_user_logs_in_unless_another_grant_is_set() {
    assert_eq!(oauth(server("{ url: 'https://x' }")).grant, OAuthGrant::AuthorizationCode);
    assert_eq!(oauth(server(&entry("'oauth'"))).grant, OAuthGrant::AuthorizationCode);
    let written = entry("{ grantType: 'authorization_code', redirectPort: 4711 }");
    assert_eq!(oauth(server(&written)).grant, OAuthGrant::AuthorizationCode);
}

#[test]
fn a_client_authenticates_as_itself_with_a_secret_or_a_key() {
    let with_secret = oauth(server(&entry(
        "{ grantType: 'client_credentials', clientId: 'a', clientSecret: 'secret://env/A' }",
    )));
    assert_eq!(with_secret.grant, OAuthGrant::ClientCredentials);
    assert!(with_secret.client_secret.is_some() && with_secret.private_key.is_none());

    let with_key = oauth(server(&entry(
        "{ grantType: 'client_credentials', clientId: 'a', privateKey: 'secret://file/key.pem', \
           signingAlgorithm: 'ES384' }",
    )));
    assert_eq!(with_key.signing_algorithm.as_deref(), Some("ES384"));
    assert!(with_key.client_secret.is_none() && with_key.private_key.is_some());
}

#[test]
fn a_workload_presents_its_assertion() {
    let settings = oauth(server(&entry(
        "{ grantType: 'jwt_bearer', assertion: 'secret://file//run/secrets/token' }",
    )));
    let OAuthGrant::JwtBearer { assertion } = settings.grant else { panic!("another grant") };
    assert_eq!(assertion.to_string(), "secret://file//run/secrets/token");
}

#[test]
fn an_identity_provider_vouches_for_the_user() {
    let settings = oauth(server(&entry(ENTERPRISE)));
    let OAuthGrant::Enterprise(provider) = settings.grant else { panic!("another grant") };
    assert!(provider.token_endpoint.is("https://login.example.com/token"));
    assert_eq!(provider.client_id, "desk");
    assert_eq!(provider.client_secret.unwrap().to_string(), "secret://env/IDP_SECRET");
    assert_eq!(provider.id_token.to_string(), "secret://file/id-token");
}

#[test]
fn tokens_are_bound_where_the_server_asks_for_it_unless_set_otherwise() {
    for (auth, expected) in [
        ("{}", DpopSetting::Auto),
        ("{ dpop: 'auto' }", DpopSetting::Auto),
        ("{ dpop: 'always' }", DpopSetting::Always),
        ("{ dpop: 'never' }", DpopSetting::Never),
    ] {
        assert_eq!(oauth(server(&entry(auth))).dpop, expected, "{auth}");
    }
    refused_once("{ dpop: true }", &["auth.dpop"]);
    refused_once("{ dpop: 'off' }", &["expected one of auto, always, never", "auth.dpop"]);
    let [old, new] = ["{}", "{ dpop: 'never' }"].map(|auth| server(&entry(auth)));
    assert_eq!(ServerChange::between(Some(&old), Some(&new)), ServerChange::Restarted);
}

#[test]
fn every_credential_is_listed_with_its_setting() {
    let listed = |auth: &str| {
        let config = good(&format!("{{ mcp: {{ servers: {{ x: {} }} }} }}", entry(auth)));
        let references = config.secret_references();
        references.into_values().flatten().collect::<Vec<_>>()
    };
    assert_eq!(listed("{ clientId: 'a', privateKey: 'secret://env/A' }"), ["x.auth.privateKey"]);
    assert_eq!(
        listed("{ grantType: 'jwt_bearer', assertion: 'secret://env/A' }"),
        ["x.auth.assertion"]
    );
    assert_eq!(
        listed(ENTERPRISE),
        ["x.auth.identityProvider.clientSecret", "x.auth.identityProvider.idToken"]
    );
    // A server that is held back by a variable is checked, too.
    let held_back = "{ grantType: 'jwt_bearer', clientId: '${NOPE}', assertion: 'secret://env/A' }";
    assert_eq!(listed(held_back), ["x.auth.assertion"]);
}

#[test]
fn an_unset_variable_in_a_credential_holds_the_server_back() {
    let loaded = read(&format!(
        "{{ mcp: {{ servers: {{ x: {} }} }} }}",
        entry("{ grantType: 'jwt_bearer', assertion: '${NOPE}' }")
    ));
    assert_eq!(loaded.report.count(Severity::Error), 0);
    assert_eq!(loaded.config.unwrap().agents[0].mcp.held_back["x"].unset_variables, ["NOPE"]);
}

#[test]
fn a_change_of_the_grant_restarts_the_server() {
    let change = |old: &str, new: &str| {
        let [old, new] = [old, new].map(|auth| server(&entry(auth)));
        ServerChange::between(Some(&old), Some(&new))
    };
    let (one, two) = (ENTERPRISE, ENTERPRISE.replace("id-token", "other-token"));
    assert_eq!(change(one, one), ServerChange::Same);
    assert_eq!(change(one, &two), ServerChange::Restarted);
    assert_eq!(change("{}", one), ServerChange::Restarted);
}

#[test]
fn layers_are_merged_before_the_grant_is_checked() {
    let config = good(
        "{ mcp: { servers: { x: { url: 'https://x', auth: { grantType: 'jwt_bearer' } } } },\n\
         agents: { defaults: { mcp: { servers: { x: { auth: { assertion: 'secret://env/A' } } } } } } }",
    );
    let settings = oauth(config.agents[0].mcp.servers["x"].clone());
    assert!(matches!(settings.grant, OAuthGrant::JwtBearer { .. }));
}

#[test]
fn an_unknown_grant_or_algorithm_is_reported_with_the_known_ones() {
    let known = "expected one of authorization_code, client_credentials, jwt_bearer, enterprise";
    refused_once(
        "{ grantType: 'jwt-bearer', assertion: 'secret://env/A' }",
        &[known, "did you mean `jwt_bearer`?", "auth.grantType"],
    );
    refused_once(
        "{ clientId: 'a', privateKey: 'secret://env/A', signingAlgorithm: 'es256' }",
        &["expected one of ES256, ES384, RS256, PS256, EdDSA", "auth.signingAlgorithm"],
    );
    refused_once("{ grantType: 'jwt_bearer', assertion: 5 }", &["expected a string"]);
}

#[test]
fn a_key_needs_a_client_id_and_excludes_a_secret() {
    refused_once(
        "{ privateKey: 'secret://env/A' }",
        &["a private key needs a client id", "auth.privateKey", "add `clientId`"],
    );
    refused_once(
        "{ clientId: 'a', clientSecret: 'secret://env/A', privateKey: 'secret://env/B' }",
        &["both `clientSecret` and `privateKey`", "auth.privateKey", "keep one of them"],
    );
    let auth = "{ clientId: 'a', signingAlgorithm: 'ES256' }";
    let said = doubtful(&format!("{{ mcp: {{ servers: {{ x: {} }} }} }}", entry(auth)));
    assert_says(&said, &["warning: `signingAlgorithm` has no effect without `privateKey`"]);
}

#[test]
fn client_credentials_need_an_id_and_a_secret_or_key() {
    refused_once(
        "{ grantType: 'client_credentials' }",
        &[
            "`client_credentials` needs a client id and a client secret or private key",
            "auth.grantType",
            "add `clientId`, and `clientSecret` or `privateKey`",
        ],
    );
    refused_once(
        "{ grantType: 'client_credentials', clientId: 'a' }",
        &["needs a client secret or a private key", "add `clientSecret` or `privateKey`"],
    );
    for credential in ["clientSecret", "privateKey"] {
        refused_once(
            &format!("{{ grantType: 'client_credentials', {credential}: 'secret://env/A' }}"),
            &["needs a client id"],
        );
    }
}

#[test]
fn an_assertion_belongs_to_one_grant() {
    refused_once(
        "{ grantType: 'jwt_bearer' }",
        &["`jwt_bearer` needs an assertion", "auth.grantType", "add `assertion`"],
    );
    refused_once(
        "{ assertion: 'secret://env/A' }",
        &[
            "`assertion` is only used by `jwt_bearer`",
            "auth.assertion",
            "add `grantType: \"jwt_bearer\"`, or remove it",
        ],
    );
    refused_once(
        &ENTERPRISE.replace("{ grantType", "{ assertion: 'secret://env/A', grantType"),
        &["`assertion` is only used by `jwt_bearer`", "another grant", "remove it, or write"],
    );
}

#[test]
fn an_identity_provider_belongs_to_one_grant_and_is_complete() {
    refused_once(
        "{ grantType: 'enterprise' }",
        &["`enterprise` needs an identity provider", "auth.grantType", "add `identityProvider`"],
    );
    refused_once(
        &ENTERPRISE.replace("grantType: 'enterprise', ", ""),
        &["`identityProvider` is only used by `enterprise`", "add `grantType: \"enterprise\"`"],
    );
    let said = refused("{ grantType: 'enterprise', identityProvider: {} }");
    assert_says(
        &said,
        &[
            "the identity provider needs `tokenEndpoint`",
            "the identity provider needs `clientId`",
            "the identity provider needs `idToken`",
            "add `idToken`, the ID token of the user",
            "auth.identityProvider",
        ],
    );
    refused_once(&ENTERPRISE.replace("https:", "http:"), &["only https is allowed"]);
    refused_once(
        &ENTERPRISE.replace("tokenEndpoint", "tokenEndpont"),
        &["did you mean `tokenEndpoint`?"],
    );
}

#[test]
fn a_path_in_place_of_a_credential_is_recognised() {
    let file = "to read it from a file write `secret://file/PATH`";
    refused_once(
        "{ clientId: 'a', privateKey: '~/key.pem' }",
        &["expected a private key in PKCS#8 PEM", file],
    );
    refused_once(
        "{ clientId: 'a', privateKey: '-----BEGIN RSA PRIVATE KEY-----' }",
        &["expected a private key in PKCS#8 PEM", "openssl pkcs8 -topk8"],
    );
    refused_once(
        "{ grantType: 'jwt_bearer', assertion: '/run/secrets/token' }",
        &["expected a JWT", "auth.assertion", file],
    );
    refused_once(
        &ENTERPRISE.replace("secret://file/id-token", "id-token"),
        &["expected a JWT", "auth.identityProvider.idToken", file],
    );
}

#[test]
fn settings_without_effect_are_warned_of() {
    let said = |entry: &str| {
        let said = doubtful(&format!("{{ mcp: {{ servers: {{ x: {entry} }} }} }}"));
        assert_eq!(said.matches("warning:").count(), 1, "{said}");
        said
    };
    let port = "{ grantType: 'jwt_bearer', assertion: 'secret://env/A', redirectPort: 1 }";
    assert_says(&said(&entry(port)), &["`redirectPort` has no effect with `jwt_bearer`"]);

    let unused = "the OAuth settings have no effect";
    let key = said("{ url: 'https://x', auth: { clientId: 'a' }, apiKey: 'secret://env/A' }");
    assert_says(&key, &[unused, "`apiKey` is used instead", "keep one of them", "servers.x.auth"]);
    let header = "headers: { authorization: '${TOKEN}' }";
    let header = said(&format!("{{ url: 'https://x', auth: 'oauth', {header} }}"));
    assert_says(&header, &[unused, "the `Authorization` header is used instead"]);
    let user = said("{ url: 'https://${TOKEN}@x', auth: {} }");
    assert_says(&user, &[unused, "user and password in `url` are used instead"]);
    assert!(!user.contains("token-from-the-environment"), "{user}");
}
