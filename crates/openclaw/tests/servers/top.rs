//! `openclaw top`.

use openclaw_testkit::Script;

use crate::support::{Place, conversation, on_a_terminal};
use crate::with_gateway::gateway;

#[test]
fn top_without_a_gateway_says_how_to_start_one() {
    let place = Place::new(&[]);
    let (code, _, stderr) = place.said(&["top"]);
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("the gateway is not running"), "{stderr}");
    assert!(stderr.contains("openclaw gateway start"), "{stderr}");
}

#[test]
fn top_shows_a_running_gateway() {
    let place = Place::new(&[("a", &Script::new())]);
    let _running = gateway(&place);
    for _ in 0..3 {
        assert_eq!(place.said(&["mcp", "call", "a", "echo", "text=hi"]).0, 0);
    }
    let sample = place.json(&["--json", "top"]);
    assert_eq!(sample["servers"][0]["state"], "ready", "{sample}");
    assert_eq!(sample["tools"][0]["calls"], 3, "{sample}");

    let stdout = place.ok(&["top", "--count", "2", "--interval", "1"]);
    assert_eq!(stdout.matches("SERVER").count(), 2, "{stdout}");
    assert!(stdout.contains("echo") && stdout.contains("since start"), "{stdout}");

    let (code, shown) = conversation(&place, &[("last 1 s", "q")], &["top", "--interval", "1"]);
    assert_eq!(code, 0, "{shown:?}");
    let (entered, rest) = shown.split_once("\u{1b}[?1049h").unwrap();
    assert!(!entered.contains("SERVER"), "{shown:?}");
    assert!(rest.contains("echo"), "{shown:?}");
    assert!(rest.trim_end().ends_with("\u{1b}[?25h\u{1b}[?1049l"), "it is restored: {shown:?}");

    let (code, shown) = conversation(&place, &[("SERVER", "\u{3}")], &["top"]);
    assert_eq!(code, 0, "{shown:?}");
    let dumb = ("TERM", "dumb");
    let (code, shown) = on_a_terminal(&place, &[], &["top", "--count", "1"], &[dumb]);
    assert_eq!(code, 0, "{shown:?}");
    assert!(shown.contains("SERVER") && !shown.contains("\u{1b}[?1049h"), "{shown:?}");
}
