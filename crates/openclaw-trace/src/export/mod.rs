//! Sends spans and log lines to a collector: OTLP over HTTP, in protobuf.
//!
//! Work only puts its records in a bounded queue; a thread of its own sends them in batches. A
//! collector that is down, slow or wrong costs records, which are counted, and never time.

mod http;
mod logs;
mod otlp;
mod queue;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use openclaw_secrets::Redactor;

use crate::record::{Sink, SpanRecord};
use crate::tracer::Tracer;
pub use logs::LogRecord;
use queue::ExportQueue;
pub use queue::Record;
pub use settings::{Batches, Off, Settings, Signal};

/// Sends records to a collector. Nothing runs before the first one.
#[derive(Debug, Clone)]
pub struct Exporter<R>(Arc<ExportQueue<R>>);

/// Sends spans.
pub type SpanExporter = Exporter<SpanRecord>;
/// Sends log lines.
pub type LogExporter = Exporter<LogRecord>;

impl<R: Record> Exporter<R> {
    /// Creates an exporter. The redactor is applied to every text that leaves the program.
    pub fn new(settings: Settings, redactor: Redactor) -> Self {
        Self(ExportQueue::new(settings, redactor))
    }

    /// The number of records that no collector has got.
    pub fn dropped(&self) -> u64 {
        self.0.dropped()
    }

    /// Sends what is queued, for at most this long. Records that are added later are dropped.
    pub fn close(&self, patience: Duration) {
        self.0.close(patience);
    }
}

impl SpanExporter {
    /// A tracer whose spans are sent by this exporter.
    pub fn tracer(&self) -> Tracer {
        let ExportQueue { settings, redactor, .. } = &*self.0;
        let content = settings.captures_content.then(|| redactor.clone());
        Tracer::new(Arc::new(self.clone()), settings.sampler, content)
    }
}

impl Sink for SpanExporter {
    fn end(&self, span: SpanRecord) {
        self.0.push(span);
    }
}

impl LogExporter {
    /// Adds a line. Does not wait.
    pub fn add(&self, line: LogRecord) {
        self.0.push(line.without_secrets(&self.0.redactor));
    }
}
