//! A collector, and the spans that it has received.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use openclaw_testkit::{Peers, RunningPeer};
use serde_json::Value;

/// A generous timeout: the machine may be busy.
const LONG: Duration = Duration::from_secs(120);

/// A collector that runs until this is dropped.
pub(crate) struct Collector {
    peer: RunningPeer,
    file: PathBuf,
    /// Its own: its command line must not mention the folder of the program under test.
    _folder: tempfile::TempDir,
}

/// A span as the collector has decoded it.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) attributes: Vec<(String, Value)>,
    pub(crate) is_error: bool,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("spans.jsonl");
        Self { peer: Peers::find().otlp_collector(&file), file, _folder: folder }
    }

    /// The variables of a program that sends its spans here.
    pub(crate) fn variables(&self) -> [(&str, &str); 3] {
        [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", self.peer.url()),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20canary-header"),
            ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        ]
    }

    /// Everything that it has received, as text.
    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.file).unwrap_or_default()
    }

    /// The requests that it has received.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let text = self.text();
        // The last line may be incomplete.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn received(&self) -> Vec<Span> {
        let requests = self.requests();
        let list = |of: &Value, name: &str| of[name].as_array().cloned().unwrap_or_default();
        let resources = requests.iter().flat_map(|it| list(&it["request"], "resourceSpans"));
        let scopes = resources.flat_map(|it| list(&it, "scopeSpans"));
        scopes.flat_map(|it| list(&it, "spans")).map(|span| Span::of(&span)).collect()
    }

    /// Waits until it has received this many spans, and returns them.
    pub(crate) fn spans(&self, number: usize) -> Vec<Span> {
        let deadline = Instant::now() + LONG;
        loop {
            let spans = self.received();
            if spans.len() >= number {
                assert_eq!(spans.len(), number, "{spans:#?}");
                return spans;
            }
            assert!(Instant::now() < deadline, "{spans:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Span {
    fn of(span: &Value) -> Self {
        let text = |name: &str| span[name].as_str().unwrap_or_default().to_owned();
        let time = |name: &str| text(name).parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
        let attributes = span["attributes"].as_array().into_iter().flatten();
        let attributes = attributes.map(|it| {
            let value = it["value"].as_object().unwrap().values().next().unwrap().clone();
            (it["key"].as_str().unwrap().to_owned(), value)
        });
        Self {
            name: text("name"),
            kind: text("kind"),
            // Ids are bytes, which JSON has in Base64.
            trace: hex(&text("traceId")),
            id: hex(&text("spanId")),
            parent: hex(&text("parentSpanId")),
            attributes: attributes.collect(),
            is_error: span["status"]["code"] == "STATUS_CODE_ERROR",
        }
    }

    pub(crate) fn attribute(&self, key: &str) -> Option<&Value> {
        self.attributes.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// The `traceparent` of its children.
    pub(crate) fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.trace, self.id)
    }
}

/// Returns the spans with this name.
pub(crate) fn named<'s>(spans: &'s [Span], name: &str) -> Vec<&'s Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

/// Returns the only span with this name.
pub(crate) fn only<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    let [span] = named(spans, name)[..] else { panic!("not one `{name}`: {spans:#?}") };
    span
}

/// The bytes of a text in Base64, as JSON has them, in hexadecimal digits.
pub(crate) fn hex(base64: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut out, mut bits, mut held) = (String::new(), 0_u32, 0);
    for byte in base64.bytes().filter(|byte| *byte != b'=') {
        let digit = DIGITS.iter().position(|it| *it == byte).unwrap();
        bits = bits << 6 | u32::try_from(digit).unwrap();
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push_str(&format!("{:02x}", bits >> held & 0xff));
        }
    }
    out
}
