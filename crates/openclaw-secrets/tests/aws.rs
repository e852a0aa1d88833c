//! AWS Secrets Manager, against the emulator `moto`.

#![cfg(feature = "aws")]
#![allow(clippy::expect_used, clippy::panic, reason = "a failing test may panic")]

mod support;

use axum::{
    Json, Router,
    routing::{get, put},
};
use openclaw_secrets::{AwsSettings, Environment, ResolveErrorKind, SecretSettings};
use serde_json::json;
use support::{Asker, Server, aws::Moto, settings};

const KEYS: [(&str, &str); 3] = [
    ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("AWS_REGION", "eu-west-1"),
];

fn at(url: &str) -> SecretSettings {
    let aws = AwsSettings { endpoint: Some(url.to_owned()), ..AwsSettings::default() };
    SecretSettings { aws, ..settings() }
}

/// These variables, on a machine without instance metadata.
fn environment(variables: &[(&str, &str)]) -> Environment {
    variables.iter().copied().chain([("AWS_EC2_METADATA_DISABLED", "true")]).collect()
}

#[tokio::test]
async fn text_binary_and_older_versions_are_read_with_the_credentials_of_the_environment() {
    let moto = Moto::start(&[]);
    let secret = json!({ "Name": "prod/db", "SecretString": "old-password" });
    let first = moto.secrets("eu-west-1", "CreateSecret", &secret).await;
    let first = first["VersionId"].as_str().expect("version");
    let second = json!({ "SecretId": "prod/db", "SecretString": "new-password" });
    moto.secrets("eu-west-1", "PutSecretValue", &second).await;
    // `binary-text`, and the bytes FF FE.
    for (name, encoded) in [("text", "YmluYXJ5LXRleHQ="), ("bytes", "//4=")] {
        let secret = json!({ "Name": name, "SecretBinary": encoded });
        moto.secrets("eu-west-1", "CreateSecret", &secret).await;
    }

    let aws = Asker::new(at(&moto.url), environment(&KEYS));
    assert_eq!(aws.value("secret://aws/prod/db").await, "new-password");
    assert_eq!(aws.value("secret://aws/prod/db#AWSCURRENT").await, "new-password");
    assert_eq!(aws.value("secret://aws/prod/db#AWSPREVIOUS").await, "old-password");
    assert_eq!(aws.value(&format!("secret://aws/prod/db#{first}")).await, "old-password");
    assert_eq!(aws.value("secret://aws/text").await, "binary-text");
    aws.fails("secret://aws/bytes", ResolveErrorKind::NotText).await;
    assert_eq!(aws.redactor.redact("is new-password"), "is [REDACTED]");
}

#[tokio::test]
async fn an_arn_is_looked_up_in_its_own_region() {
    let moto = Moto::start(&[]);
    let secret = json!({ "Name": "far", "SecretString": "far-away" });
    let created = moto.secrets("ap-south-1", "CreateSecret", &secret).await;
    let arn = created["ARN"].as_str().expect("ARN");
    let aws = Asker::new(at(&moto.url), environment(&KEYS[..2]));
    assert_eq!(aws.value(&format!("secret://aws/{arn}")).await, "far-away");
    // A name alone does not determine the region.
    let error = aws.fails("secret://aws/far", ResolveErrorKind::NotConfigured).await;
    assert_eq!(
        error.hint(),
        Some("set `secrets.aws.region` in the configuration, or `AWS_REGION`")
    );
}

#[tokio::test]
async fn a_profile_and_the_endpoint_variable_are_used() {
    let home = tempfile::tempdir().expect("home");
    let folder = home.path().join(".aws");
    std::fs::create_dir(&folder).expect("folder");
    std::fs::write(folder.join("config"), "[profile team]\nregion = us-west-2\n").expect("config");
    let keys = "[team]\naws_access_key_id = AKIATEAM\naws_secret_access_key = team-key\n";
    std::fs::write(folder.join("credentials"), keys).expect("credentials");
    let moto = Moto::start(&[]);
    let secret = json!({ "Name": "team", "SecretString": "teamwork" });
    moto.secrets("us-west-2", "CreateSecret", &secret).await;
    let aws = AwsSettings { profile: Some("team".into()), ..AwsSettings::default() };
    let settings = SecretSettings { aws, home: Some(home.path().to_owned()), ..settings() };
    let variables = environment(&[("AWS_ENDPOINT_URL_SECRETS_MANAGER", &moto.url)]);
    let aws = Asker::new(settings, variables);
    assert_eq!(aws.value("secret://aws/team").await, "teamwork");
}

#[tokio::test]
async fn missing_secrets_and_those_scheduled_for_deletion_are_not_found() {
    let moto = Moto::start(&[]);
    let secret = json!({ "Name": "gone", "SecretString": "x" });
    moto.secrets("eu-west-1", "CreateSecret", &secret).await;
    moto.secrets("eu-west-1", "DeleteSecret", &json!({ "SecretId": "gone" })).await;
    let aws = Asker::new(at(&moto.url), environment(&KEYS));
    for (text, words) in [
        ("secret://aws/nope", "secret `nope` or its version not found"),
        ("secret://aws/gone", "may be scheduled for deletion"),
    ] {
        let error = aws.fails(text, ResolveErrorKind::NotFound).await;
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn unknown_credentials_are_denied_and_not_quoted() {
    // moto authenticates from the first request on.
    let moto = Moto::start(&[("INITIAL_NO_AUTH_ACTION_COUNT", "0")]);
    let asker = Asker::new(at(&moto.url), environment(&KEYS));
    let error = asker.fails("secret://aws/x", ResolveErrorKind::Denied).await;
    assert!(!format!("{error} {error:?}").contains("wJalrXUtnFEMI"), "{error:?}");
}

#[tokio::test]
async fn the_signature_is_accepted_by_a_server_that_checks_it() {
    // The number of setup requests; after them, moto checks signatures and permissions.
    let moto = Moto::start(&[("INITIAL_NO_AUTH_ACTION_COUNT", "4")]);
    let user = ("UserName", "reader");
    moto.iam(&[("Action", "CreateUser"), user]).await;
    let policy = json!({ "Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": "*" }] });
    let policy = policy.to_string();
    let policy = [("PolicyName", "read"), ("PolicyDocument", policy.as_str())];
    moto.iam(&[("Action", "PutUserPolicy"), user, policy[0], policy[1]]).await;
    let created = moto.iam(&[("Action", "CreateAccessKey"), user]).await;
    let field = |name: &str| {
        let (_, rest) = created.split_once(&format!("<{name}>")).expect(name);
        rest.split('<').next().expect(name)
    };
    let secret = json!({ "Name": "x", "SecretString": "for-the-reader" });
    moto.secrets("eu-west-1", "CreateSecret", &secret).await;
    let (id, key) = (field("AccessKeyId"), field("SecretAccessKey"));
    let keys = [("AWS_ACCESS_KEY_ID", id), ("AWS_SECRET_ACCESS_KEY", key), KEYS[2]];
    let aws = Asker::new(at(&moto.url), environment(&keys));
    assert_eq!(aws.value("secret://aws/x").await, "for-the-reader");
    let wrong = [keys[0], KEYS[1], KEYS[2]];
    let asker = Asker::new(at(&moto.url), environment(&wrong));
    asker.fails("secret://aws/x", ResolveErrorKind::Denied).await;
}

#[tokio::test]
async fn containers_and_instances_provide_credentials() {
    let moto = Moto::start(&[]);
    let secret = json!({ "Name": "x", "SecretString": "of-the-machine" });
    moto.secrets("eu-west-1", "CreateSecret", &secret).await;
    let credentials = json!({ "AccessKeyId": "ASIATASK", "SecretAccessKey": "task-key-0001",
        "Token": "task-token-0001", "Expiration": "2100-01-01T00:00:00Z" });
    let answer = Json(credentials.clone());
    let container = Router::new().route("/task", get(|| async { answer }));
    let container = Server::start(container).await;
    let full = format!("{}/task", container.url());
    let variables = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", full.as_str()), KEYS[2]];
    let aws = Asker::new(at(&moto.url), environment(&variables));
    assert_eq!(aws.value("secret://aws/x").await, "of-the-machine");
    assert_eq!(aws.redactor.redact("task-key-0001 task-token-0001"), "[REDACTED] [REDACTED]");

    let mut credentials = credentials;
    credentials["Code"] = "Success".into();
    let instance = Router::new()
        .route("/latest/api/token", put(|| async { "metadata-token" }))
        .route("/latest/meta-data/placement/region", get(|| async { "eu-west-1" }))
        .route("/latest/meta-data/iam/security-credentials/", get(|| async { "role" }))
        .route(
            "/latest/meta-data/iam/security-credentials/role",
            get(|| async { Json(credentials) }),
        );
    let instance = Server::start(instance).await;
    let variables = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", instance.url())];
    let aws = Asker::new(at(&moto.url), variables.into_iter().collect());
    assert_eq!(aws.value("secret://aws/x").await, "of-the-machine");
}

#[tokio::test]
async fn missing_credentials_are_reported_with_a_hint() {
    let moto = Moto::start(&[]);
    let asker = Asker::new(at(&moto.url), environment(&KEYS[2..]));
    let error = asker.fails("secret://aws/x", ResolveErrorKind::NotConfigured).await;
    assert_eq!(error.to_string(), "`secret://aws/x`: no AWS credentials found");
    assert!(error.hint().is_some_and(|hint| hint.contains("aws configure")));
}

#[tokio::test]
async fn an_endpoint_without_a_listener_is_unreachable() {
    let aws = Asker::new(at("http://127.0.0.1:1"), environment(&KEYS));
    aws.fails("secret://aws/x", ResolveErrorKind::Unreachable).await;
}
