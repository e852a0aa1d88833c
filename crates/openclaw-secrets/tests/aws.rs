//! AWS Secrets Manager, against the emulator `moto`.

#![cfg(feature = "aws")]
#![allow(clippy::expect_used, clippy::panic, reason = "a failing test may panic")]

mod support;

use aws_sdk_secretsmanager::{
    Client,
    config::{BehaviorVersion, Credentials, Region},
    primitives::Blob,
};
use openclaw_secrets::{AwsSettings, ResolveErrorKind, Settings};
use support::{Asker, aws::in_own_process, environment, settings};

const KEYS: [(&str, &str); 3] = [
    ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("AWS_REGION", "eu-west-1"),
];

fn admin(url: &str, region: &'static str) -> Client {
    let config = aws_sdk_secretsmanager::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(region))
        .credentials_provider(Credentials::new("admin", "admin", None, None, "test"))
        .endpoint_url(url);
    Client::from_conf(config.build())
}

fn at(url: &str) -> Settings {
    let aws = AwsSettings { endpoint: Some(url.to_owned()), ..AwsSettings::default() };
    Settings { aws, ..settings() }
}

#[test]
fn text_binary_and_older_versions_are_read_with_the_credentials_of_the_environment() {
    let test = "text_binary_and_older_versions_are_read_with_the_credentials_of_the_environment";
    in_own_process(test, &[], &KEYS, async |url| {
        let admin = admin(&url, "eu-west-1");
        let first = admin.create_secret().name("prod/db").secret_string("old-password");
        let first = first.send().await.expect("create").version_id.expect("version");
        let second = admin.put_secret_value().secret_id("prod/db").secret_string("new-password");
        second.send().await.expect("put");
        for (name, bytes) in [("text", &b"binary-text"[..]), ("bytes", b"\xff\xfe")] {
            admin
                .create_secret()
                .name(name)
                .secret_binary(Blob::new(bytes))
                .send()
                .await
                .expect(name);
        }

        let aws = Asker::new(at(&url), environment([]));
        assert_eq!(aws.value("secret://aws/prod/db").await, "new-password");
        assert_eq!(aws.value("secret://aws/prod/db#AWSCURRENT").await, "new-password");
        assert_eq!(aws.value("secret://aws/prod/db#AWSPREVIOUS").await, "old-password");
        assert_eq!(aws.value(&format!("secret://aws/prod/db#{first}")).await, "old-password");
        assert_eq!(aws.value("secret://aws/text").await, "binary-text");
        let error = aws.error("secret://aws/bytes").await;
        assert_eq!(error.kind(), ResolveErrorKind::NotText);
        assert_eq!(aws.redactor.redact("is new-password"), "is [REDACTED]");
    });
}

#[test]
fn an_arn_is_looked_up_in_its_own_region() {
    in_own_process("an_arn_is_looked_up_in_its_own_region", &[], &KEYS[..2], async |url| {
        let create =
            admin(&url, "ap-south-1").create_secret().name("far").secret_string("far-away");
        let arn = create.send().await.expect("create").arn.expect("ARN");
        let aws = Asker::new(at(&url), environment([]));
        assert_eq!(aws.value(&format!("secret://aws/{arn}")).await, "far-away");
        // A name alone does not say where.
        let error = aws.error("secret://aws/far").await;
        assert_eq!(error.kind(), ResolveErrorKind::NotConfigured);
        assert_eq!(error.hint(), Some("set `secrets.aws.region` in the config, or `AWS_REGION`"));
    });
}

#[test]
fn a_profile_of_the_users_files_and_the_endpoint_variable_are_honoured() {
    let home = tempfile::tempdir().expect("home");
    let folder = home.path().join(".aws");
    std::fs::create_dir(&folder).expect("folder");
    std::fs::write(folder.join("config"), "[profile team]\nregion = us-west-2\n").expect("config");
    let keys = "[team]\naws_access_key_id = AKIATEAM\naws_secret_access_key = team-key\n";
    std::fs::write(folder.join("credentials"), keys).expect("credentials");
    let home = home.path().to_str().expect("path");
    let test = "a_profile_of_the_users_files_and_the_endpoint_variable_are_honoured";
    in_own_process(test, &[], &[("HOME", home)], async |url| {
        let create =
            admin(&url, "us-west-2").create_secret().name("team").secret_string("teamwork");
        create.send().await.expect("create");
        let aws = AwsSettings { profile: Some("team".into()), ..AwsSettings::default() };
        let aws = Asker::new(Settings { aws, ..settings() }, environment([]));
        assert_eq!(aws.value("secret://aws/team").await, "teamwork");
    });
}

#[test]
fn secrets_that_are_not_there_or_on_their_way_out_are_not_found() {
    let test = "secrets_that_are_not_there_or_on_their_way_out_are_not_found";
    in_own_process(test, &[], &KEYS, async |url| {
        let admin = admin(&url, "eu-west-1");
        admin.create_secret().name("gone").secret_string("x").send().await.expect("create");
        admin.delete_secret().secret_id("gone").send().await.expect("delete");
        let aws = Asker::new(at(&url), environment([]));
        for (text, words) in [
            ("secret://aws/nope", "AWS has no secret `nope`"),
            ("secret://aws/gone", "may be scheduled for deletion"),
        ] {
            let error = aws.error(text).await;
            assert_eq!(error.kind(), ResolveErrorKind::NotFound);
            assert!(error.to_string().contains(words), "{error}");
        }
    });
}

#[test]
fn credentials_that_aws_does_not_know_are_denied_and_not_shown() {
    let test = "credentials_that_aws_does_not_know_are_denied_and_not_shown";
    // From the first request on, moto checks who asks.
    let strict = [("INITIAL_NO_AUTH_ACTION_COUNT", "0")];
    in_own_process(test, &strict, &KEYS, async |url| {
        let error = Asker::new(at(&url), environment([])).error("secret://aws/x").await;
        assert_eq!(error.kind(), ResolveErrorKind::Denied, "{error}");
        assert!(!format!("{error} {error:?}").contains("wJalrXUtnFEMI"), "{error:?}");
    });
}

#[test]
fn without_credentials_the_user_is_told_how_to_get_them() {
    let test = "without_credentials_the_user_is_told_how_to_get_them";
    in_own_process(test, &[], &KEYS[2..], async |url| {
        let error = Asker::new(at(&url), environment([])).error("secret://aws/x").await;
        assert_eq!(error.kind(), ResolveErrorKind::NotConfigured, "{error}");
        assert_eq!(error.to_string(), "`secret://aws/x`: there are no AWS credentials");
        assert!(error.hint().is_some_and(|hint| hint.contains("aws configure")));
    });
}

#[test]
fn an_endpoint_where_nobody_listens_is_unreachable() {
    let test = "an_endpoint_where_nobody_listens_is_unreachable";
    in_own_process(test, &[], &KEYS, async |_| {
        let aws = Asker::new(at("http://127.0.0.1:1"), environment([]));
        let error = aws.error("secret://aws/x").await;
        assert_eq!(error.kind(), ResolveErrorKind::Unreachable, "{error}");
    });
}
