//! Known values do not reach a log, in any encoding.

#![allow(clippy::expect_used, clippy::panic, reason = "a failing test may panic")]

use std::{
    error::Error,
    fmt,
    io::{self, Write},
    sync::{Arc, Mutex},
};

use base64::{Engine as _, engine::general_purpose as base64_of};
use openclaw_secrets::{
    AwsSettings, ExecCommand, GcpSettings, REDACTED, RedactingWriter, Redactor, SecretSettings,
    SecretString, SecretTemplate, VaultSettings,
};
use tracing_subscriber::fmt::MakeWriter;

const PEM: &str = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\n\
                   AgEAAoIBAQC7VJTUt9Us8cKjMzEfYyjiWA4R\nQw==\n-----END PRIVATE KEY-----\n";

/// Values that are awkward to print.
const SECRETS: [&str; 5] = [
    "hunter22",
    "p\"a\\ss/w'rd +%&=?",
    "grüße 🔑 tab\there",
    "ghp_0123456789abcdefABCDEF0123456789",
    PEM,
];

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("log").clone()).expect("UTF-8")
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("log").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn redactor_of(secret: &str) -> Redactor {
    let redactor = Redactor::new();
    redactor.add(&SecretString::from(secret));
    redactor
}

/// A library type whose `Debug` leaks its secret.
#[derive(Debug)]
#[expect(dead_code, reason = "read by Debug")]
struct Careless {
    password: String,
    bytes: Vec<u8>,
    nested: Option<Box<Careless>>,
}

/// A library error that leaks its secret.
#[derive(Debug)]
struct Leak(String, Option<Box<Leak>>);

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server error: {}", self.0)
    }
}

impl Error for Leak {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.1.as_deref().map(|inner| inner as _)
    }
}

/// Logs a secret in every known way.
fn log_everything(secret: &str) {
    let careless = |nested| Careless { password: secret.into(), bytes: secret.into(), nested };
    let careless = careless(Some(Box::new(careless(None))));
    tracing::info!("display {secret}");
    tracing::info!("debug {secret:?} of {:?}", Some(secret));
    tracing::info!(?secret, nested = ?careless, "fields");
    tracing::info!("pretty {:#?}", careless.password);
    tracing::info!("single line bytes {:?}", secret.as_bytes());
    tracing::info!("byte string {}", secret.as_bytes().escape_ascii());

    let error = Leak(secret.into(), Some(Box::new(Leak(format!("inner {secret}"), None))));
    tracing::error!(error = &error as &(dyn Error + 'static), "error chain");
    tracing::error!("{error} {error:?} {error:#?}");
    let panic = std::panic::catch_unwind(|| panic!("cannot use {secret}")).expect_err("panic");
    tracing::error!("panicked: {:?}", panic.downcast_ref::<String>());

    let json = serde_json::json!({ "token": secret, "list": [secret] });
    tracing::info!(%json, "a body {json}");
    tracing::info!("a body in a body {}", serde_json::json!({ "body": json.to_string() }));
    tracing::info!(body = ?json.to_string(), "a body, debugged");

    for engine in [&base64_of::STANDARD, &base64_of::URL_SAFE] {
        tracing::info!("base64 {}", engine.encode(secret));
        for user in ["u", "us", "use", "user"] {
            tracing::info!("Basic {}", engine.encode(format!("{user}:{secret}")));
            tracing::info!("Basic {}", engine.encode(format!("{user}:{secret}:tail")));
        }
    }
    tracing::info!("base64 {}", base64_of::STANDARD_NO_PAD.encode(secret));
    tracing::info!("base64 {}", base64_of::URL_SAFE_NO_PAD.encode(secret));
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    tracing::info!("hex {hex} {}", hex.to_uppercase());

    let mut url = reqwest::Url::parse("https://example.com/").expect("URL");
    url.query_pairs_mut().append_pair("token", secret);
    url.path_segments_mut().expect("path").push(secret);
    url.set_password(Some(secret)).expect("password");
    url.set_fragment(Some(secret));
    tracing::info!(%url, "a URL {}", url.as_str().to_lowercase());
}

/// What must not be in the log: for a multi-line secret, each line.
fn tell_tales(secret: &str) -> Vec<String> {
    let pieces = secret.lines().filter(|line| line.len() >= 4 && !line.starts_with("-----"));
    pieces
        .flat_map(|piece| {
            let debug = format!("{piece:?}");
            let encoded: String = reqwest::Url::parse_with_params("x:", [("", piece)])
                .expect("URL")
                .query()
                .expect("query")[1..]
                .to_owned();
            [
                piece.to_owned(),
                debug[1..debug.len() - 1].to_owned(),
                base64_of::STANDARD_NO_PAD.encode(piece),
                base64_of::URL_SAFE_NO_PAD.encode(piece),
                encoded,
            ]
        })
        .collect()
}

fn assert_clean(log: &str, secret: &str) {
    for tell_tale in tell_tales(secret) {
        assert!(!log.contains(&tell_tale), "`{tell_tale}` is in the log:\n{log}");
    }
    assert!(log.contains(REDACTED));
}

#[test]
fn no_secret_reaches_a_text_log_or_a_json_log_in_any_form() {
    for secret in SECRETS {
        let redactor = redactor_of(secret);
        for json in [false, true] {
            let log = Log::default();
            let writer = {
                let (redactor, log) = (redactor.clone(), log.clone());
                move || RedactingWriter::new(redactor.clone(), log.clone())
            };
            let builder = tracing_subscriber::fmt().with_ansi(false).with_writer(writer);
            if json {
                tracing::subscriber::with_default(builder.json().finish(), || {
                    log_everything(secret);
                });
            } else {
                tracing::subscriber::with_default(builder.finish(), || log_everything(secret));
            }
            assert_clean(&log.text(), secret);
        }
    }
}

#[test]
fn the_same_log_without_the_filter_leaks_the_secret() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, || log_everything("hunter22"));
    assert!(tell_tales("hunter22").iter().all(|tell_tale| log.text().contains(tell_tale)));
}

#[test]
fn types_that_hold_a_secret_do_not_show_it_even_without_the_filter() {
    let secret = SecretString::from("hunter22");
    let template = SecretTemplate::parse("Bearer hunter22").expect("plain");
    let shown = format!("{secret:?} {secret:#?} {template:?} {template:#?} {template}");
    assert!(!shown.contains("hunter22"), "{shown}");
}

#[test]
fn a_secret_that_is_written_in_pieces_is_found() {
    let log = Log::default();
    let mut writer = RedactingWriter::new(redactor_of("hunter22"), log.clone());
    for piece in ["the pass", "word is hun", "ter", "22, remember", " it\nnext h"] {
        writer.write_all(piece.as_bytes()).expect("write");
    }
    assert_eq!(log.text(), "the password is [REDACTED], remember it\n");
    writer.write_all(b"unter22").expect("write");
    drop(writer);
    assert_eq!(log.text(), "the password is [REDACTED], remember it\nnext [REDACTED]");
}

#[test]
fn a_secret_of_several_lines_is_found_when_they_are_written_one_by_one() {
    let log = Log::default();
    let mut writer = RedactingWriter::new(redactor_of("ab\ncd\nef"), log.clone());
    for line in ["key: ab\n", "cd\n", "ef.\n", "ab\n", "other\n"] {
        writer.write_all(line.as_bytes()).expect("write");
    }
    assert_eq!(log.text(), "key: [REDACTED].\nab\nother\n");
}

#[test]
fn a_long_line_is_passed_on_in_pieces_that_split_no_secret() {
    let log = Log::default();
    let mut writer = RedactingWriter::new(redactor_of("hunter22"), log.clone());
    for _ in 0..20_000 {
        for piece in ["..hunt", "er22.."] {
            writer.write_all(piece.as_bytes()).expect("write");
        }
    }
    assert!(log.text().len() > 64 * 1024, "nothing was passed on");
    drop(writer);
    assert_eq!(log.text(), "..[REDACTED]..".repeat(20_000));
}

#[test]
fn bytes_that_are_not_utf_8_pass_through_the_writer() {
    let log = Log::default();
    let redactor = redactor_of("hunter22");
    let make_writer = {
        let log = log.clone();
        move || RedactingWriter::new(redactor.clone(), log.clone())
    };
    make_writer.make_writer().write_all(b"\xff hunter22 \xfe\n").expect("write");
    assert_eq!(*log.0.lock().expect("log"), b"\xff [REDACTED] \xfe\n");
}

#[test]
fn a_text_without_known_values_is_not_copied() {
    let text = redactor_of("hunter22");
    assert!(matches!(text.redact("nothing here"), std::borrow::Cow::Borrowed(_)));
    assert!(matches!(Redactor::new().redact("hunter22"), std::borrow::Cow::Borrowed(_)));
}

#[test]
fn values_too_short_to_be_secret_are_not_redacted() {
    let redactor = redactor_of("abc");
    redactor.add(&SecretString::from(""));
    assert_eq!(redactor.redact("abc abcd"), "abc abcd");
}

#[test]
fn clones_share_values_until_they_are_forgotten() {
    let redactor = Redactor::new();
    let other = redactor.clone();
    redactor.add(&SecretString::from("hunter22"));
    assert_eq!(other.redact("hunter22"), REDACTED);
    other.forget(&SecretString::from("hunter22"));
    assert_eq!(redactor.redact("hunter22"), "hunter22");
}

#[test]
fn where_two_secrets_overlap_nothing_of_either_remains() {
    let redactor = redactor_of("abcdef");
    redactor.add(&SecretString::from("defghi"));
    redactor.add(&SecretString::from("cdef"));
    assert_eq!(redactor.redact("xabcdefghix"), format!("x{REDACTED}x"));
}

#[test]
fn a_truncated_long_secret_is_redacted() {
    let secret = "0123456789abcdefü".repeat(50);
    let redactor = redactor_of(&secret);
    assert_eq!(redactor.redact(&format!("key {}… (cut)", &secret[..200])), "key [REDACTED]… (cut)");
}

#[test]
fn values_added_one_by_one_are_all_found() {
    let redactor = Redactor::new();
    let value = |n| format!("value {n} of six hundred");
    for n in 0..600 {
        redactor.add(&SecretString::from(value(n)));
    }
    let text: String = (0..600).map(|n| value(n) + "\n").collect();
    assert_eq!(redactor.redact(&text), format!("{REDACTED}\n").repeat(600));
}

#[test]
fn only_the_first_lines_of_a_long_file_are_searched_for_individually() {
    let lines: Vec<String> = (0..20_000).map(|n| format!("line {n} of a key file")).collect();
    let secret = lines.join("\n");
    let redactor = redactor_of(&secret);
    assert_eq!(redactor.redact(&lines[0]), REDACTED);
    assert_eq!(redactor.redact(&lines[Redactor::MAX_LINES - 1]), REDACTED);
    assert_eq!(redactor.redact(&lines[Redactor::MAX_LINES]), lines[Redactor::MAX_LINES].as_str());
    assert_eq!(redactor.redact(&format!("<{secret}>")), format!("<{REDACTED}>"));

    let log = Log::default();
    let mut writer = RedactingWriter::new(redactor, log.clone());
    for line in &lines[..300] {
        writeln!(writer, "{line}").expect("write");
    }
    drop(writer);
    assert_eq!(log.text(), REDACTED);
}

#[test]
fn debug_of_the_settings_hides_arguments_and_url_credentials() {
    let address =
        || Some("https://hunter22:hunter22@example.com/v?key=hunter22#hunter22".to_owned());
    let exec = ExecCommand {
        command: "pass".into(),
        args: vec!["--password".into(), "hunter22".into()],
        env: [("PASSWORD".to_owned(), SecretString::from("hunter22"))].into(),
        timeout: None,
    };
    let settings = SecretSettings {
        exec: [("pass".to_owned(), exec)].into(),
        gcp: GcpSettings { endpoint: address(), ..GcpSettings::default() },
        aws: AwsSettings { endpoint: address(), ..AwsSettings::default() },
        vault: VaultSettings {
            address: address(),
            token: Some("hunter22".into()),
            secret_id: Some("hunter22".into()),
            ..VaultSettings::default()
        },
        ..SecretSettings::default()
    };
    for shown in [format!("{settings:?}"), format!("{settings:#?}")] {
        assert!(!shown.contains("hunter22") && !shown.contains("--password"), "{shown}");
        assert_eq!(shown.matches("https://example.com/v").count(), 3, "{shown}");
    }
}

/// Plaintext credentials in the configuration.
#[cfg(feature = "resolve")]
mod credentials {
    use openclaw_secrets::{Environment, Resolver};

    use super::*;

    async fn redactor_after(text: &str) -> Redactor {
        let redactor = Redactor::new();
        let environment: Environment = [("TOKEN", "t0ken-of-env")].into_iter().collect();
        let resolver = Resolver::new(SecretSettings::default(), environment, redactor.clone());
        let template = SecretTemplate::parse(text).expect("template");
        // Failures are tested, too.
        drop(resolver.resolve_credential(&template).await);
        redactor
    }

    #[tokio::test]
    async fn a_plaintext_credential_is_redacted_from_then_on() {
        let redactor = redactor_after("sk-0123").await;
        assert_eq!(redactor.redact("key=sk-0123"), "key=[REDACTED]");
        let redactor = redactor_after("  sk-0123 ").await;
        assert_eq!(redactor.redact("key=sk-0123"), "key=[REDACTED]");
    }

    #[tokio::test]
    async fn the_scheme_before_a_credential_is_not_hidden_everywhere() {
        for scheme in ["Bearer", "Negotiate", "AWS4-HMAC-SHA256", "PrivateToken"] {
            for credential in ["hunt22", "hunter22hunter22", "secret://env/TOKEN"] {
                let redactor = redactor_after(&format!("{scheme} {credential}")).await;
                let value = if credential.contains("://") { "t0ken-of-env" } else { credential };
                assert_eq!(redactor.redact(&format!("got {value}.")), "got [REDACTED].");
                assert_eq!(redactor.redact(&format!("{scheme} {value}")), REDACTED);
                assert_eq!(redactor.redact(scheme), scheme);
            }
        }
    }

    #[tokio::test]
    async fn only_long_literal_words_are_redacted_on_their_own() {
        let redactor = redactor_after("correct horse battery-staple secret://env/TOKEN").await;
        assert_eq!(redactor.redact("a correct horse"), "a correct horse");
        assert_eq!(redactor.redact("battery-staple t0ken-of-env"), "[REDACTED] [REDACTED]");
        assert_eq!(redactor.redact("horse battery-staple t0ken-of-env"), REDACTED);
    }

    #[tokio::test]
    async fn plaintext_is_redacted_even_if_a_reference_fails() {
        let redactor = redactor_after("Bearer sk-in-the-clear secret://env/NOPE").await;
        assert_eq!(redactor.redact("Bearer sk-in-the-clear"), "Bearer [REDACTED]");
    }

    #[tokio::test]
    async fn in_other_settings_only_the_references_are_redacted() {
        let redactor = Redactor::new();
        let environment: Environment = [("TOKEN", "t0ken-of-env")].into_iter().collect();
        let resolver = Resolver::new(SecretSettings::default(), environment, redactor.clone());
        let template = SecretTemplate::parse("production secret://env/TOKEN").expect("template");
        resolver.resolve_template(&template).await.expect("value");
        assert_eq!(redactor.redact("production t0ken-of-env"), "production [REDACTED]");
    }
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    fn secret() -> impl Strategy<Value = String> {
        // Brackets could merge with those of the marker.
        "[^\\[\\]]{4,60}".prop_filter("worth hiding", |secret| {
            secret.trim().len() >= Redactor::MIN_LENGTH && !REDACTED.contains(secret.as_str())
        })
    }

    proptest! {
        #[test]
        fn no_text_shows_a_secret_or_its_base64(
            secret in secret(), before in ".{0,30}", after in ".{0,30}", form in 0..7_usize,
        ) {
            let forms = [
                secret.clone(),
                base64_of::STANDARD.encode(&secret),
                base64_of::STANDARD_NO_PAD.encode(&secret),
                base64_of::URL_SAFE.encode(&secret),
                base64_of::URL_SAFE_NO_PAD.encode(&secret),
                serde_json::to_string(&secret).expect("JSON"),
                format!("{secret:?}"),
            ];
            let text = format!("{before}{}{after}", forms[form]);
            let clean = redactor_of(&secret).redact(&text).into_owned();
            prop_assert!(clean.contains(REDACTED));
            for form in &forms {
                prop_assert!(!clean.contains(form.as_str()), "{form:?} in {clean:?}");
            }
        }

        #[test]
        fn no_longer_base64_text_shows_a_secret_within(
            secret in secret(),
            before in prop::collection::vec(any::<u8>(), 0..20),
            after in prop::collection::vec(any::<u8>(), 0..20),
            url_safe in any::<bool>(),
        ) {
            let whole = [&before, secret.as_bytes(), &after].concat();
            let engine = if url_safe { base64_of::URL_SAFE } else { base64_of::STANDARD };
            let text = engine.encode(&whole);
            // Every character that contains a bit of the secret.
            let first = before.len() * 8 / 6;
            let last = ((before.len() + secret.len()) * 8).div_ceil(6);
            let clean = redactor_of(&secret).redact(&text).into_owned();
            let (left, right) = clean.split_once(REDACTED).expect("redacted");
            prop_assert!(text[..first].starts_with(left));
            let right = right.rsplit(REDACTED).next().unwrap_or_default();
            prop_assert!(text[last..].ends_with(right));
        }

        #[test]
        fn cutting_a_text_into_writes_changes_nothing(
            secret in secret(), text in ".{0,40}", cuts in prop::collection::vec(0..80_usize, 0..6),
        ) {
            let redactor = redactor_of(&secret);
            let whole = format!("{text}{secret}{text}");
            let expected = redactor.redact(&whole).into_owned();
            let log = Log::default();
            let mut writer = RedactingWriter::new(redactor, log.clone());
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(whole.len())).collect();
            cuts.sort_unstable();
            let mut done = 0;
            for cut in cuts.into_iter().chain([whole.len()]) {
                writer.write_all(&whole.as_bytes()[done..cut]).expect("write");
                done = cut;
            }
            drop(writer);
            prop_assert!(!log.text().contains(&secret));
            prop_assert!(log.text().contains(REDACTED));
            if !whole.contains('\n') {
                prop_assert_eq!(log.text(), expected);
            }
        }
    }
}
