//! What this process sends to collectors, as the variables of OpenTelemetry have it.

use std::time::{Duration, Instant};

use openclaw_secrets::Redactor;
use openclaw_trace::Tracer;
use openclaw_trace::export::{Exporter, LogExporter, Off, Record, Settings, Signal, SpanExporter};

use crate::edge;

/// How long sending the last spans and log lines may take.
const LAST_RECORDS: Duration = Duration::from_secs(2);
/// How long the last log lines have at least, which report what became of the spans.
const LAST_LINES: Duration = Duration::from_millis(200);

/// What sends spans and log lines, where it is switched on.
#[derive(Default)]
pub(crate) struct Telemetry {
    spans: Option<SpanExporter>,
    pub(crate) logs: Option<LogExporter>,
    problems: Vec<String>,
}

impl Telemetry {
    /// Reads the environment.
    pub(crate) fn of_this_process(redactor: &Redactor) -> Self {
        let mut problems = Vec::new();
        let spans = exporter(Signal::Traces, "traces", redactor, &mut problems);
        let logs = exporter(Signal::Logs, "logs", redactor, &mut problems);
        // Most are settings of both.
        problems.sort_unstable();
        problems.dedup();
        Self { spans, logs, problems }
    }

    /// Logs the problems of the settings: a program must not fail because of its telemetry.
    pub(crate) fn report_problems(&self) {
        self.problems.iter().for_each(|problem| tracing::warn!("{problem}"));
    }

    /// Records spans; off unless a collector is named (`OTEL_EXPORTER_OTLP_ENDPOINT`).
    pub(crate) fn tracer(&self) -> Tracer {
        self.spans.as_ref().map_or_else(Tracer::off, SpanExporter::tracer)
    }

    /// Sends the last records, if there is a collector. Does not take long.
    pub(crate) fn finish(&self) {
        let started = Instant::now();
        if let Some(spans) = &self.spans {
            spans.close(LAST_RECORDS);
        }
        if let Some(logs) = &self.logs {
            logs.close(LAST_RECORDS.saturating_sub(started.elapsed()).max(LAST_LINES));
        }
    }
}

/// Returns the exporter of a signal, if it is switched on.
fn exporter<R: Record>(
    signal: Signal,
    name: &str,
    redactor: &Redactor,
    problems: &mut Vec<String>,
) -> Option<Exporter<R>> {
    match Settings::from_variables(signal, &edge::variable, problems) {
        Ok(settings) => {
            redactor.add_all(&settings.secrets());
            Some(Exporter::new(settings, redactor.clone()))
        }
        Err(Off::NotWanted) => None,
        Err(Off::Unusable(why)) => {
            problems.push(format!("{name} are off: {why}"));
            None
        }
    }
}
