use super::profiles::{AssumedRole, CredentialPlan, CredentialSource, Profiles};

const CONFIG: &str = r#"
# A comment
[default]
Region = eu-west-1 ; of the office
s3 =
  max_queue_size = 1000
  region = nested

[profile  tool]
credential_process = "C:\Program Files\tool.exe"  --user 'a  b'#c

[profile sso]
sso_session = corp
sso_account_id = 111122223333
sso_role_name = Reader

[sso-session corp]
sso_region = us-east-1
sso_start_url = https://corp.example/start

[profile old-sso]
sso_start_url = https://corp.example/start
sso_region = us-east-1
sso_account_id = 111122223333
sso_role_name = Reader

[profile outer]
role_arn = arn:aws:iam::1:role/outer
source_profile = inner
[profile inner]
role_arn = arn:aws:iam::1:role/inner
source_profile = keys
external_id = e
role_session_name = s

[profile own]
role_arn = arn:aws:iam::1:role/own
source_profile = own

[profile machine]
role_arn = arn:aws:iam::1:role/machine
credential_source = Ec2InstanceMetadata

[profile pod]
role_arn = arn:aws:iam::1:role/pod
web_identity_token_file = /var/run/token

[profile a]
role_arn = arn:aws:iam::1:role/a
source_profile = b
[profile b]
role_arn = arn:aws:iam::1:role/b
source_profile = a

[profile nowhere]
role_arn = arn:aws:iam::1:role/nowhere
source_profile = missing

[profile half]
aws_access_key_id = AKIAHALF
"#;

const CREDENTIALS: &str = "[keys]\naws_access_key_id=AKIAKEYS\naws_secret_access_key=k/+=\n\
                           [own]\naws_access_key_id=AKIAOWN\naws_secret_access_key=k\n";

fn profiles(chosen: &str) -> Profiles {
    Profiles::new(CONFIG, CREDENTIALS, Some(chosen.to_owned()))
}

fn plan(chosen: &str) -> CredentialPlan {
    profiles(chosen).plan().expect(chosen).expect(chosen)
}

fn arns(plan: &CredentialPlan) -> Vec<&str> {
    plan.roles.iter().map(|role| role.arn.as_str()).collect()
}

#[test]
fn comments_and_nested_settings_are_ignored() {
    let profiles = Profiles::new(CONFIG, CREDENTIALS, None);
    assert_eq!(profiles.property("region"), Some("eu-west-1"));
    assert_eq!(profiles.property("max_queue_size"), None);
    assert!(profiles.plan().expect("plan").is_none(), "the default profile has no credentials");
}

#[test]
fn a_command_is_kept_as_written() {
    let CredentialSource::Process(command) = plan("tool").source else { panic!("no command") };
    assert_eq!(command, r#""C:\Program Files\tool.exe"  --user 'a  b'#c"#);
}

#[test]
fn an_sso_token_is_found_by_session_or_start_url() {
    for (name, file) in [("sso", "corp"), ("old-sso", "https://corp.example/start")] {
        let CredentialSource::Sso { region, cached_as, .. } = plan(name).source else {
            panic!("{name}")
        };
        assert_eq!((region.as_str(), cached_as.as_str()), ("us-east-1", file));
    }
}

#[test]
fn roles_are_assumed_from_the_source_outwards() {
    let plan = plan("outer");
    let CredentialSource::Keys(keys) = &plan.source else { panic!("no keys") };
    assert_eq!(keys.secret_access_key, "k/+=");
    assert_eq!(arns(&plan), ["arn:aws:iam::1:role/inner", "arn:aws:iam::1:role/outer"]);
    let inner = AssumedRole {
        arn: "arn:aws:iam::1:role/inner".to_owned(),
        session: Some("s".to_owned()),
        external_id: Some("e".to_owned()),
    };
    assert_eq!(plan.roles[0], inner);
}

#[test]
fn a_role_can_have_its_source_in_its_own_profile() {
    assert!(matches!(plan("own").source, CredentialSource::Keys(_)));
    assert_eq!(arns(&plan("own")), ["arn:aws:iam::1:role/own"]);
    assert!(matches!(plan("machine").source, CredentialSource::Instance));
    assert_eq!(arns(&plan("machine")), ["arn:aws:iam::1:role/machine"]);
    assert!(matches!(plan("pod").source, CredentialSource::WebIdentity { .. }));
    assert_eq!(plan("pod").roles, []);
}

#[test]
fn an_unusable_profile_is_an_error() {
    for name in ["a", "nowhere", "half", "not-there"] {
        assert!(profiles(name).plan().is_err(), "{name}");
    }
    let none = Profiles::new("", "", None).plan();
    assert!(none.expect("no files").is_none(), "without profiles the search continues");
}
