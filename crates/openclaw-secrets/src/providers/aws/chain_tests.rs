use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{Request, Response};
use reqsign_core::{
    Context as Host, Error, FileRead, HttpSend, ProvideCredential as _, Result, StaticEnv,
};

use super::{chain::Chain, profiles::Profiles};
use crate::{Environment, Redactor, SecretSettings, providers::ProviderContext};

/// AWS services that return the same credentials to every request, and record the requests.
#[derive(Clone, Debug, Default)]
struct Services(Arc<Mutex<Vec<String>>>);

impl HttpSend for Services {
    async fn http_send(&self, request: Request<Bytes>) -> Result<Response<Bytes>> {
        let (uri, body) = (request.uri().to_string(), request.body().clone());
        let signed_by = request.headers().get("authorization").and_then(|v| v.to_str().ok());
        let signed_by = signed_by.and_then(|v| v.split(['=', '/']).nth(1)).unwrap_or("nobody");
        let body = String::from_utf8_lossy(&body);
        self.0.lock().expect("lock").push(format!("{signed_by} {uri} {body}"));
        let action = if uri.contains("portal.sso") {
            let keys = r#"{"accessKeyId":"ASIASSO","secretAccessKey":"sso-key","sessionToken":"t",
                           "expiration":4102444800000}"#;
            return Ok(Response::new(format!(r#"{{"roleCredentials":{keys}}}"#).into()));
        } else if body.contains("AssumeRoleWithWebIdentity") {
            "AssumeRoleWithWebIdentity"
        } else {
            "AssumeRole"
        };
        let keys = "<Credentials><AccessKeyId>ASIAROLE00000000</AccessKeyId>\
                    <SecretAccessKey>role-secret-key</SecretAccessKey>\
                    <SessionToken>role-session-token</SessionToken>\
                    <Expiration>2100-01-01T00:00:00Z</Expiration></Credentials>";
        let answer =
            format!("<{action}Response><{action}Result>{keys}</{action}Result></{action}Response>");
        Ok(Response::new(answer.into()))
    }
}

/// The files of the test machine.
#[derive(Debug)]
struct Files(HashMap<String, String>);

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> Result<Vec<u8>> {
        let content = self.0.get(path).map(|content| content.clone().into_bytes());
        content.ok_or_else(|| Error::config_invalid("not found"))
    }
}

struct Machine {
    services: Services,
    redactor: Redactor,
    host: Host,
    context: ProviderContext,
}

fn machine(variables: &[(&str, &str)], files: &[(&str, &str)]) -> Machine {
    let own = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<HashMap<_, _>>()
    };
    let services = Services::default();
    let home_dir = Some("/home".into());
    let host = Host::new()
        .with_http_send(services.clone())
        .with_file_read(Files(own(files)))
        .with_env(StaticEnv { home_dir, envs: own(variables) });
    let redactor = Redactor::new();
    let environment: Environment =
        variables.iter().copied().chain([("AWS_EC2_METADATA_DISABLED", "true")]).collect();
    let settings = Arc::new(SecretSettings::default());
    let context = ProviderContext { settings, environment, redactor: redactor.clone() };
    Machine { services, redactor, host, context }
}

impl Machine {
    /// Returns the key found with this profile, and the recorded requests.
    async fn find(&self, config: &str, region: Option<&str>) -> Result<(String, Vec<String>)> {
        let chosen = (!config.is_empty()).then(|| "x".to_owned());
        let profiles = Profiles::new(config, "", chosen);
        let chain = Chain::new(&self.context, profiles, region.map(str::to_owned));
        let found = chain.provide_credential(&self.host).await?;
        let asked = self.services.0.lock().expect("lock").clone();
        Ok((found.map(|credential| credential.access_key_id).unwrap_or_default(), asked))
    }
}

#[tokio::test]
async fn roles_are_chained_in_the_configured_region() {
    let machine = machine(&[], &[]);
    let config = "[profile x]\nrole_arn=arn:aws:iam::111122223333:role/outer\nsource_profile=y\n\
                  [profile y]\nrole_arn=arn:aws:iam::111122223333:role/inner\nsource_profile=z\n\
                  external_id=extern\n[profile z]\naws_access_key_id=AKIABASE\n\
                  aws_secret_access_key=base-key\n";
    let (key, asked) = machine.find(config, Some("eu-west-1")).await.expect("credentials");
    assert_eq!((key.as_str(), asked.len()), ("ASIAROLE00000000", 2));
    assert!(asked[0].starts_with("AKIABASE https://sts.eu-west-1.amazonaws.com/"), "{asked:?}");
    assert!(asked[0].contains("role%2Finner") && asked[0].contains("ExternalId=extern"));
    assert!(
        asked[1].starts_with("ASIAROLE00000000 ") && asked[1].contains("role%2Fouter"),
        "{asked:?}"
    );
    assert!(asked[1].contains("RoleSessionName=openclaw"), "{asked:?}");
    let text = machine.redactor.redact("role-secret-key role-session-token").into_owned();
    assert_eq!(text, "[REDACTED] [REDACTED]");
}

#[tokio::test]
async fn a_web_identity_token_is_exchanged_even_without_a_region() {
    let role = "arn:aws:iam::111122223333:role/pod";
    let variables = [("AWS_ROLE_ARN", role), ("AWS_WEB_IDENTITY_TOKEN_FILE", "/token")];
    let of_variables = machine(&variables, &[("/token", "jwt")]);
    let config = format!("[profile x]\nrole_arn={role}\nweb_identity_token_file=/token\n");
    let of_profile = machine(&[], &[("/token", "jwt")]);
    for (machine, config) in [(of_variables, ""), (of_profile, config.as_str())] {
        let (key, asked) = machine.find(config, None).await.expect("credentials");
        assert_eq!(key, "ASIAROLE00000000");
        assert!(asked[0].starts_with("nobody https://sts.us-east-1.amazonaws.com/"), "{asked:?}");
        assert!(asked[0].contains("WebIdentityToken=jwt"), "{asked:?}");
    }
}

#[tokio::test]
async fn the_token_of_an_sso_session_is_exchanged() {
    // SHA-1 of `corp`.
    let file = "/home/.aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json";
    let token = r#"{"accessToken":"sso-token","expiresAt":"2100-01-01T00:00:00Z"}"#;
    let config = "[profile x]\nsso_session=corp\nsso_account_id=1\nsso_role_name=Reader\n\
                  [sso-session corp]\nsso_region=eu-north-1\nsso_start_url=https://c.example\n";
    let logged_in = machine(&[], &[(file, token)]);
    let (key, asked) = logged_in.find(config, None).await.expect("credentials");
    assert_eq!(key, "ASIASSO");
    assert!(asked[0].contains("portal.sso.eu-north-1.amazonaws.com"), "{asked:?}");
    assert!(asked[0].contains("role_name=Reader&account_id=1"), "{asked:?}");
}

#[tokio::test]
async fn a_profile_that_fails_is_not_replaced_by_another_identity() {
    let role = "arn:aws:iam::111122223333:role/pod";
    let variables = [("AWS_ROLE_ARN", role), ("AWS_WEB_IDENTITY_TOKEN_FILE", "/token")];
    let machine = machine(&variables, &[("/token", "jwt")]);
    let config = "[profile x]\nsso_start_url=https://c.example\nsso_region=eu-north-1\n\
                  sso_account_id=1\nsso_role_name=Reader\n";
    assert!(machine.find(config, None).await.is_err(), "not logged in");
}

#[cfg(unix)]
#[tokio::test]
async fn a_command_prints_credentials_and_may_use_the_shell() {
    let config = "[profile x]\ncredential_process = printf '{\"Version\":1,\"AccessKeyId\":\"%s\",\
                  \"SecretAccessKey\":\"s\",\"Expiration\":\"2100-01-01T00:00:00Z\"}' \"A  B\"\n";
    let (key, _) = machine(&[], &[]).find(config, None).await.expect("credentials");
    assert_eq!(key, "A  B");
    for command in ["exit 1", "echo {}", "echo '{\"Version\":1}'"] {
        let config = format!("[profile x]\ncredential_process = {command}\n");
        assert!(machine(&[], &[]).find(&config, None).await.is_err(), "{command}");
    }
}
