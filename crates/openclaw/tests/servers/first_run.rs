//! The first chat without a model offers to set one up.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use openclaw_testkit::{ModelServer, Piece};

use crate::support::{Place, on_a_terminal};
use crate::with_gateway::gateway;

const NO_COLOUR: (&str, &str) = ("NO_COLOR", "1");
const OFFER: &str = "No language model is set up";
const PROVIDER: &str = "Enter to skip]: ";
const TRUST: (&str, &str) = ("Trust this folder?", "y\r");
const EXIT: (&str, &str) = ("› ", "/exit\r");

/// A place without a configuration.
fn fresh() -> Place {
    let place = Place::new(&[]);
    fs::remove_file(place.path("openclaw.json")).unwrap();
    place
}

#[test]
fn enter_starts_a_chat_with_the_offline_model_and_it_is_offered_once() {
    let place = fresh();
    let steps = [(PROVIDER, "\r"), TRUST, ("› ", "add 2 and 3\r"), ("returned: 5", ""), EXIT];
    let (exit, shown) = on_a_terminal(&place, &steps, &["chat"], &[NO_COLOUR]);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains(OFFER) && shown.contains("offline"), "{shown}");
    assert!(!place.path("openclaw.json").exists());
    let (exit, shown) = on_a_terminal(&place, &[EXIT], &["chat"], &[NO_COLOUR]);
    assert!(exit == 0 && !shown.contains(OFFER), "{shown}");
    place.assert_nothing_left();
}

#[test]
fn a_provider_is_tested_and_its_key_is_kept_in_a_file_without_a_keychain() {
    let model = ModelServer::start(|_| vec![Piece::text("Hello from the model.")]);
    let place = fresh();
    let key = "sk-a-secret-key-0123456789";
    let (url, key_typed) = (format!("{}\r", model.url()), format!("{key}\r"));
    let steps = [
        (PROVIDER, "9\r"),
        ("Type a number", ""),
        (PROVIDER, "4\r"),
        ("Base URL", url.as_str()),
        ("Model, as", "small\r"),
        ("API key (not shown", key_typed.as_str()),
        ("custom/small responds", ""),
        ("turned off", ""),
        ("Store the key: ", "f\r"),
        ("the model is set in", ""),
        TRUST,
        ("› ", "hello\r"),
        ("Hello from the model.", ""),
        EXIT,
    ];
    let (exit, shown) = on_a_terminal(&place, &steps, &["chat"], &[NO_COLOUR]);
    assert_eq!(exit, 0, "{shown}");
    assert!(!shown.contains(key), "{shown}");
    assert!(model.requests().len() >= 2, "{:?}", model.requests());
    let config = fs::read_to_string(place.path("openclaw.json")).unwrap();
    assert!(config.contains("custom/small") && !config.contains(key), "{config}");
    assert!(config.contains("secret://file/secrets/custom-api-key"), "{config}");
    assert!(config.contains("demo-server"), "the demo server is kept: {config}");
    let file = place.path("secrets/custom-api-key");
    assert_eq!(fs::read_to_string(&file).unwrap(), key);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let (code, said, _) = place.said(&["agent", "--message", "hello"]);
    assert!(code == 0 && said.contains("Hello from the model."), "{said}");
}

#[test]
fn a_failed_test_sets_nothing_up_and_asks_again() {
    let place = fresh();
    let steps = [
        (PROVIDER, "4\r"),
        // Nothing listens on the port of discarded data.
        ("Base URL", "http://127.0.0.1:9/v1\r"),
        ("Model, as", "small\r"),
        ("API key (not shown", "\r"),
        ("cannot be reached", ""),
        (PROVIDER, "\r"),
        TRUST,
        EXIT,
    ];
    let (exit, shown) = on_a_terminal(&place, &steps, &["chat"], &[NO_COLOUR]);
    assert_eq!(exit, 0, "{shown}");
    assert!(!place.path("openclaw.json").exists() && !place.path("secrets").exists(), "{shown}");
}

#[test]
fn nothing_is_offered_in_ci_beside_a_gateway_with_a_model_or_in_a_pipe() {
    let place = fresh();
    let ci = [NO_COLOUR, ("CI", "true")];
    let (exit, shown) = on_a_terminal(&place, &[TRUST, EXIT], &["chat"], &ci);
    assert!(exit == 0 && !shown.contains(OFFER), "{shown}");
    let named = ["chat", "--model", "offline"];
    let (exit, shown) = on_a_terminal(&place, &[EXIT], &named, &[NO_COLOUR]);
    assert!(exit == 0 && !shown.contains(OFFER), "{shown}");
    let (code, said, _) = place.said(&["agent", "--message", "add 2 and 3"]);
    assert!(code == 0 && !said.contains(OFFER), "{said}");
    {
        let _running = gateway(&place);
        let (exit, shown) = on_a_terminal(&place, &[EXIT], &["chat"], &[NO_COLOUR]);
        assert!(exit == 0 && !shown.contains(OFFER), "{shown}");
    }
    assert!(!place.path("model-setup.json").exists(), "it was not shown");
}
