//! Progress reports of a server about a pending call.

use openclaw_content::{Untrusted, clean_line};
use openclaw_secrets::Redactor;
pub use openclaw_tools::{Progress, ProgressWatcher};
use serde::Deserialize;

/// Maximum length of a progress message, in characters.
const MESSAGE_CHARS: usize = 200;

/// Parses a progress notification.
fn read(line: &[u8], redactor: &Redactor) -> Option<Progress> {
    let Notification { params } = serde_json::from_slice(line).ok()?;
    let clean = |text: String| clean_line(Untrusted::new(&redactor.redact(&text)), MESSAGE_CHARS);
    let message = params.message.map(clean);
    let message = message.filter(|text| !text.is_empty());
    Some(Progress { done: params.progress, total: params.total, message })
}

#[derive(Deserialize)]
struct Notification {
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    progress: f64,
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

/// Sends the progress in a notification to the watcher.
pub(super) fn tell(watcher: &ProgressWatcher, line: &[u8], redactor: &Redactor) {
    if let Some(progress) = read(line, redactor) {
        watcher.report(progress);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(params: &str) -> Option<Progress> {
        let redactor = Redactor::new();
        redactor.add(&"hunter22".into());
        super::read(format!(r#"{{"method":"x","params":{params}}}"#).as_bytes(), &redactor)
    }

    #[test]
    fn a_progress_message_is_one_clean_line_with_a_percentage() {
        let progress = read(r#"{"progress":1,"total":4,"message":"a\nb\u001b[31m"}"#).unwrap();
        assert_eq!(progress.percent(), Some(25.0));
        let message = progress.message.unwrap();
        assert!(message.starts_with("a b") && !message.contains(char::is_control), "{message:?}");
        assert!(read(r#"{"progress":"x"}"#).is_none());
        let progress = read(r#"{"progress":1,"message":"with hunter22"}"#).unwrap();
        assert_eq!(progress.message.unwrap(), "with [REDACTED]");
    }

    #[test]
    fn an_invalid_percentage_is_dropped_or_clamped() {
        assert_eq!(read(r#"{"progress":3}"#).unwrap().percent(), None);
        assert_eq!(read(r#"{"progress":3,"total":0}"#).unwrap().percent(), None);
        assert_eq!(read(r#"{"progress":9,"total":3}"#).unwrap().percent(), Some(100.0));
        assert_eq!(read(r#"{"progress":-9,"total":3}"#).unwrap().percent(), Some(0.0));
    }
}
