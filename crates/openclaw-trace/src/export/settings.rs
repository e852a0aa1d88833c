//! The settings of the exporter, from the variables of the OpenTelemetry specification.

use std::time::Duration;

use openclaw_secrets::SecretString;
use percent_encoding::percent_decode_str;
use url::Url;

use crate::sampler::TraceSampler;

/// The only protocol that we have.
const PROTOCOL: &str = "http/protobuf";
/// The collector on this machine.
const LOCAL: &str = "http://localhost:4318";
/// Maximum number of headers and of resource attributes.
const MAX_PAIRS: usize = 64;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Spans: if a collector is named.
    Traces,
    /// Log lines: only if asked for (`OTEL_LOGS_EXPORTER=otlp`).
    Logs,
}

impl Signal {
    /// In the names of variables.
    fn name(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Logs => "LOGS",
        }
    }

    /// At a collector.
    fn path(self) -> &'static str {
        match self {
            Self::Traces => "v1/traces",
            Self::Logs => "v1/logs",
        }
    }

    /// A variable for batches.
    fn of_batches(self, name: &str) -> String {
        let processor = match self {
            Self::Traces => "BSP",
            Self::Logs => "BLRP",
        };
        format!("OTEL_{processor}_{name}")
    }
}

/// How records are gathered and sent (`OTEL_BSP_*`, `OTEL_BLRP_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batches {
    /// How long records wait for a batch to become full.
    pub delay: Duration,
    /// How long sending a batch may take, with all attempts.
    pub timeout: Duration,
    /// Maximum number of records that wait.
    pub queue: usize,
    /// Maximum number of records in a batch.
    pub size: usize,
}

impl Batches {
    /// The usual ones.
    pub(super) fn of(signal: Signal) -> Self {
        let delay = match signal {
            Signal::Traces => Duration::from_secs(5),
            Signal::Logs => Duration::from_secs(1),
        };
        Self { delay, timeout: Duration::from_secs(30), queue: 2048, size: 512 }
    }
}

/// Where and how records are sent.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The URL for this signal. It may contain a password.
    pub(super) endpoint: Url,
    pub(super) headers: Vec<(String, SecretString)>,
    /// Whether requests are compressed with gzip.
    pub(super) compresses: bool,
    /// The timeout of a request.
    pub(super) timeout: Duration,
    pub(super) batches: Batches,
    pub(super) sampler: TraceSampler,
    /// What describes this program, in the order of the names.
    pub(super) resource: Vec<(String, String)>,
    /// Whether the contents of calls and conversations are recorded.
    pub(super) captures_content: bool,
}

/// Why nothing is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Off {
    /// It is not switched on.
    NotWanted,
    /// It is switched on, and cannot work. For the user.
    Unusable(String),
}

impl Settings {
    /// Reads the variables of a signal. Values that are invalid are reported in `problems` and not
    /// used, as the specification has it.
    ///
    /// # Errors
    /// Why nothing is sent.
    pub fn from_variables(
        signal: Signal,
        variable: &dyn Fn(&str) -> Option<String>,
        problems: &mut Vec<String>,
    ) -> Result<Self, Off> {
        let variables = Variables { signal, variable };
        if variables.is_true("OTEL_SDK_DISABLED") {
            return Err(Off::NotWanted);
        }
        let endpoint = variables.endpoint()?;
        if let Some((name, protocol)) = variables.of_signal("PROTOCOL")
            && protocol != PROTOCOL
        {
            let protocol = protocol.escape_debug();
            return Err(Off::Unusable(format!(
                "{name} is `{protocol}`; only `{PROTOCOL}` is supported, usually on port 4318"
            )));
        }
        for name in ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"] {
            if let Some((name, _)) = variables.of_signal(name) {
                problems.push(format!("{name} is not supported, and ignored"));
            }
        }
        let compression = variables.of_signal("COMPRESSION");
        let compresses = compression.as_ref().is_some_and(|(_, value)| value == "gzip");
        if let Some((name, value)) = compression
            && !compresses
            && value != "none"
        {
            let value = value.escape_debug();
            problems.push(format!("{name} is `{value}`; only `gzip` and `none` are supported"));
        }
        let usual = Batches::of(signal);
        let mut number = |name: &str, usual: u64, range: std::ops::RangeInclusive<u64>| {
            let Some(value) = variables.get(name) else { return usual };
            value.parse().ok().filter(|it| range.contains(it)).unwrap_or_else(|| {
                let (from, to) = (range.start(), range.end());
                problems
                    .push(format!("{name} must be a number from {from} to {to}; {usual} is used"));
                usual
            })
        };
        let mut milliseconds = |name: &str, usual: Duration| {
            let usual = u64::try_from(usual.as_millis()).unwrap_or(u64::MAX);
            Duration::from_millis(number(name, usual, 1..=3_600_000))
        };
        let timeout = match variables.of_signal("TIMEOUT") {
            Some((name, _)) => milliseconds(&name, Duration::from_secs(10)),
            None => Duration::from_secs(10),
        };
        let delay = milliseconds(&signal.of_batches("SCHEDULE_DELAY"), usual.delay);
        let of_batch = milliseconds(&signal.of_batches("EXPORT_TIMEOUT"), usual.timeout);
        let mut count = |name: &str, usual: usize| {
            usize::try_from(number(name, usual as u64, 1..=65_536)).unwrap_or(usual)
        };
        let queue = count(&signal.of_batches("MAX_QUEUE_SIZE"), usual.queue);
        let size = count(&signal.of_batches("MAX_EXPORT_BATCH_SIZE"), usual.size).min(queue);
        let sampler = match signal {
            Signal::Traces => variables.sampler(problems),
            Signal::Logs => TraceSampler::default(),
        };
        Ok(Self {
            endpoint,
            headers: variables.headers(),
            compresses,
            timeout,
            batches: Batches { delay, timeout: of_batch, queue, size },
            sampler,
            resource: variables.resource(),
            captures_content: variables
                .is_true("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
        })
    }

    /// The credentials in these settings.
    pub fn secrets(&self) -> Vec<SecretString> {
        let password = self.endpoint.password().map(|it| SecretString::from(it.to_owned()));
        self.headers.iter().map(|(_, value)| value.clone()).chain(password).collect()
    }

    /// The collector's host and port, for messages.
    pub(super) fn place(&self) -> String {
        let host = self.endpoint.host_str().unwrap_or_default();
        let port = self.endpoint.port_or_known_default().unwrap_or_default();
        format!("{host}:{port}")
    }
}

struct Variables<'a> {
    signal: Signal,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Variables<'_> {
    /// A variable that is set to nothing counts as not set.
    fn get(&self, name: &str) -> Option<String> {
        (self.variable)(name).map(|it| it.trim().to_owned()).filter(|it| !it.is_empty())
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|it| it.eq_ignore_ascii_case("true"))
    }

    /// The variable of the exporter for this signal, or that for all signals, with its name.
    fn of_signal(&self, name: &str) -> Option<(String, String)> {
        let signal = format!("OTEL_EXPORTER_OTLP_{}_{name}", self.signal.name());
        let mut names = [signal, format!("OTEL_EXPORTER_OTLP_{name}")].into_iter();
        names.find_map(|name| self.get(&name).map(|value| (name, value)))
    }

    fn endpoint(&self) -> Result<Url, Off> {
        const ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let (signal, path) = (self.signal.name(), self.signal.path());
        let switch = format!("OTEL_{signal}_EXPORTER");
        let exporter = self.get(&switch);
        match exporter.as_deref() {
            Some("none") => return Err(Off::NotWanted),
            None if self.signal == Signal::Logs => return Err(Off::NotWanted),
            None | Some("otlp") => {}
            Some(other) => {
                let other = other.escape_debug();
                return Err(Off::Unusable(format!(
                    "{switch} is `{other}`; only `otlp` and `none` are supported"
                )));
            }
        }
        let of_signal = format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT");
        let (name, address) = match (self.get(&of_signal), self.get(ALL)) {
            (Some(address), _) => (&*of_signal, address),
            (None, Some(address)) => (ALL, format!("{}/{path}", address.trim_end_matches('/'))),
            (None, None) if exporter.is_some() => (ALL, format!("{LOCAL}/{path}")),
            (None, None) => return Err(Off::NotWanted),
        };
        let url = Url::parse(&address).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        // Without the value, which may contain a password.
        url.ok_or_else(|| Off::Unusable(format!("{name} must be a URL, such as `{LOCAL}`")))
    }

    fn headers(&self) -> Vec<(String, SecretString)> {
        let Some((_, pairs)) = self.of_signal("HEADERS") else { return Vec::new() };
        pairs_of(&pairs).map(|(name, value)| (name, value.into())).collect()
    }

    fn resource(&self) -> Vec<(String, String)> {
        let given = self.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let mut all: std::collections::BTreeMap<String, String> = pairs_of(&given).collect();
        let name = self.get("OTEL_SERVICE_NAME");
        match name {
            Some(name) => drop(all.insert("service.name".to_owned(), name)),
            None => drop(all.entry("service.name".to_owned()).or_insert("openclaw".to_owned())),
        }
        let version = || env!("CARGO_PKG_VERSION").to_owned();
        all.entry("service.version".to_owned()).or_insert_with(version);
        let own = [("telemetry.sdk.name", "openclaw"), ("telemetry.sdk.language", "rust")];
        all.extend(own.map(|(key, value)| (key.to_owned(), value.to_owned())));
        all.insert("telemetry.sdk.version".to_owned(), version());
        all.into_iter().collect()
    }

    fn sampler(&self, problems: &mut Vec<String>) -> TraceSampler {
        const NAME: &str = "OTEL_TRACES_SAMPLER";
        const ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";
        let ratio = self.get(ARGUMENT);
        let known = ratio.as_deref().and_then(|it| it.parse::<f64>().ok());
        let known = known.filter(|it| (0.0..=1.0).contains(it));
        if ratio.is_some() && known.is_none() {
            problems.push(format!("{ARGUMENT} must be a number from 0 to 1"));
        }
        let Some(name) = self.get(NAME) else { return TraceSampler::default() };
        TraceSampler::named(&name, known).unwrap_or_else(|| {
            let name = name.escape_debug();
            problems.push(format!("{NAME} is `{name}`, which is unknown; the default is used"));
            TraceSampler::default()
        })
    }
}

/// Parses `key=value,key=value`. Values are percent-encoded.
fn pairs_of(list: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = list.split(',').filter_map(|pair| pair.split_once('=')).take(MAX_PAIRS);
    pairs.filter_map(|(key, value)| {
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        let key = key.trim();
        (!key.is_empty()).then(|| (key.to_owned(), value.into_owned()))
    })
}

#[cfg(test)]
#[path = "settings_tests.rs"]
pub(super) mod tests;
