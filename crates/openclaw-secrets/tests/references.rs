//! Parsing of `secret://` references, and the messages for invalid ones.

#![allow(clippy::expect_used, clippy::panic, reason = "a failing test may panic")]

use openclaw_secrets::{SecretProvider, SecretRef, SecretRefProblem, SecretString, SecretTemplate};

fn parse(text: &str) -> SecretRef {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn message(text: &str) -> String {
    text.parse::<SecretRef>().expect_err(text).to_string()
}

#[test]
fn every_form_of_a_reference_is_understood_and_prints_as_written() {
    let cases = [
        ("secret://env/GITHUB_TOKEN", SecretProvider::Env, "GITHUB_TOKEN", None),
        ("secret://file/keys/github", SecretProvider::File, "keys/github", None),
        ("secret://file//run/secrets/a#b", SecretProvider::File, "/run/secrets/a#b", None),
        ("secret://file/~/token", SecretProvider::File, "~/token", None),
        ("secret://keychain/github", SecretProvider::Keychain, "github", None),
        ("secret://exec/op", SecretProvider::Exec, "op", None),
        ("secret://gcp/github-token", SecretProvider::Gcp, "github-token", None),
        ("secret://gcp/github#3", SecretProvider::Gcp, "github", Some("3")),
        (
            "secret://gcp/projects/p-1/secrets/s",
            SecretProvider::Gcp,
            "projects/p-1/secrets/s",
            None,
        ),
        ("secret://aws/prod/db#AWSPREVIOUS", SecretProvider::Aws, "prod/db", Some("AWSPREVIOUS")),
        (
            "secret://aws/arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-AbCdEf",
            SecretProvider::Aws,
            "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-AbCdEf",
            None,
        ),
        ("secret://vault/kv/team/x#token", SecretProvider::Vault, "kv/team/x", Some("token")),
    ];
    for (text, provider, name, selector) in cases {
        let reference = parse(text);
        assert_eq!(reference.provider(), provider, "{text}");
        assert_eq!(reference.name(), name, "{text}");
        assert_eq!(reference.selector(), selector, "{text}");
        assert_eq!(reference.to_string(), text);
    }
}

#[test]
fn an_invalid_reference_gets_a_helpful_message() {
    assert_eq!(
        message("secret://nope/x"),
        "`secret://nope/x`: unknown secret provider `nope`; known: env, file, keychain, exec, gcp, \
         aws, vault"
    );
    assert_eq!(
        message("secret://vualt/x"),
        "`secret://vualt/x`: unknown secret provider `vualt`; did you mean `vault`?"
    );
    assert_eq!(
        message("secret://env/"),
        "`secret://env/`: missing secret name; write `secret://env/VARIABLE`"
    );
    assert_eq!(
        message("secret://env/MY-TOKEN"),
        "`secret://env/MY-TOKEN`: an environment variable name may only contain letters, digits \
         and `_`, and must not begin with a digit"
    );
    assert_eq!(
        message("secret://gcp/x#0"),
        "`secret://gcp/x#0`: the version must be `latest`, a number from 1, or an alias"
    );
    assert_eq!(
        message("secret://vault/kv/x#"),
        "`secret://vault/kv/x#`: nothing follows `#`; write `secret://vault/PATH` or \
         `secret://vault/PATH#FIELD`"
    );
    assert_eq!(
        message("secret://"),
        "`secret://`: missing secret provider; known: env, file, keychain, exec, gcp, aws, vault"
    );
    assert!(message("secret://vault/kv/../sys/raw").contains("`..`"));
    assert!(message("secret://file/folder/").contains("must name a file"));
}

#[test]
fn a_control_character_is_rejected_everywhere_and_not_printed() {
    for text in [
        "secret://env/A\x1b[31mB",
        "secret://file/a\x1b[31mb",
        "secret://file/a\0b",
        "secret://keychain/a\u{7f}b",
        "secret://exec/a\u{9b}31mb",
        "secret://gcp/a\x1b[31mb",
        "secret://gcp/a#1\x1b[31m",
        "secret://aws/a\x1b[31mb",
        "secret://aws/a#\x1b[31m",
        "secret://vault/a\x1b[31mb",
        "secret://vault/a#\x1b[31m",
        "secret://\x1b[31m/a",
    ] {
        let error = text.parse::<SecretRef>().expect_err(text);
        assert_eq!(error.problem(), &SecretRefProblem::ControlCharacter, "{error}");
        assert!(!error.to_string().contains(char::is_control), "{error:?}");
    }
    assert_eq!(
        message("secret://vault/a\x1b[31mb"),
        "`secret://vault/a\\u{1b}[31mb`: a secret reference cannot contain control characters"
    );
    let error = SecretTemplate::parse("x=secret://env/A\x1b[31m").expect_err("inside a word");
    assert!(!error.to_string().contains(char::is_control), "{error:?}");
}

#[test]
fn a_text_that_is_not_a_reference_is_not_quoted_because_it_may_be_the_secret() {
    let error = "hunter22".parse::<SecretRef>().expect_err("not a reference");
    assert_eq!(error.to_string(), "a secret reference begins with `secret://`");
    assert!(!format!("{error:?}").contains("hunter22"));
}

#[test]
fn a_template_is_plain_a_reference_or_text_with_references_in_it() {
    let plain = SecretTemplate::parse("just text").expect("plain");
    assert!(plain.is_plain());
    assert_eq!(plain.to_string(), "[REDACTED]");

    let whole = SecretTemplate::parse("secret://env/A").expect("whole");
    assert_eq!(whole.references().collect::<Vec<_>>(), [&parse("secret://env/A")]);
    assert_eq!(whole.to_string(), "secret://env/A");

    let mixed = SecretTemplate::parse("Bearer secret://env/A\tsecret://env/B end").expect("mixed");
    assert_eq!(
        mixed.references().map(ToString::to_string).collect::<Vec<_>>(),
        ["secret://env/A", "secret://env/B"]
    );
    assert_eq!(mixed.to_string(), "[REDACTED] secret://env/A\tsecret://env/B [REDACTED]");
    assert!(!format!("{mixed:?}").contains("Bearer"));

    let filled = mixed.fill::<()>(|reference| Ok(SecretString::from(reference.name())));
    assert_eq!(filled.expect("filled").expose(), "Bearer A\tB end");
    assert!(SecretTemplate::parse("").expect("empty").parts().is_empty());
}

#[test]
fn a_bad_reference_in_a_template_is_located() {
    let text = "Bearer ü secret://nope/x tail";
    let error = SecretTemplate::parse(text).expect_err("unknown provider");
    assert_eq!(&text[error.range()], "secret://nope/x");
}

#[test]
fn a_reference_inside_a_word_is_an_error() {
    let text = "token=secret://env/A";
    let error = SecretTemplate::parse(text).expect_err("inside a word");
    assert_eq!(error.problem(), &SecretRefProblem::InsideAWord);
    assert_eq!(&text[error.range()], "secret://env/A");
}
