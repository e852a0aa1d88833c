//! The exposition formats: Prometheus text 0.0.4 and OpenMetrics 1.0.

use std::fmt::{Display, Write as _};

use crate::families::{MetricFamily, MetricKind};
use crate::latency::HistogramSnapshot;

/// The format of the exposition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// Selects the format for the `Accept` header of a request.
    pub fn accepted(accept: Option<&str>) -> Self {
        let media = accept.unwrap_or_default().split(',').map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let quality = parts.find_map(|part| part.strip_prefix("q="));
            (name, quality.and_then(|it| it.parse().ok()).unwrap_or(1.0_f32))
        });
        let quality = |wanted: &str| {
            let named = media.clone().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
            named.map(|(_, quality)| quality).fold(0.0, f32::max)
        };
        let open = quality("application/openmetrics-text");
        match open > 0.0 && open >= quality("text/plain") {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    /// Returns the content type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Writes an exposition.
pub(crate) struct ExpositionWriter {
    format: Format,
    text: String,
}

impl ExpositionWriter {
    pub(crate) fn new(format: Format) -> Self {
        Self { format, text: String::with_capacity(16 * 1024) }
    }

    /// Begins a family. Its samples must follow before the next one.
    pub(crate) fn family(&mut self, family: &MetricFamily) {
        // The older format names the samples of a counter, OpenMetrics their common name.
        let ending = match (self.format, family.kind) {
            (Format::Prometheus, MetricKind::Counter) => "_total",
            _ => "",
        };
        let MetricFamily { name, kind, help, .. } = family;
        self.line(format_args!("# HELP {name}{ending} {help}"));
        self.line(format_args!("# TYPE {name}{ending} {}", kind.name()));
    }

    /// Writes the value of a counter or a gauge, with the values of the family's labels.
    pub(crate) fn sample(&mut self, family: &MetricFamily, labels: &[&str], value: impl Display) {
        let ending = if family.kind == MetricKind::Counter { "_total" } else { "" };
        self.value(family, ending, labels, None, value);
    }

    /// Writes a family with one value.
    pub(crate) fn single(&mut self, family: &MetricFamily, value: impl Display) {
        self.family(family);
        self.sample(family, &[], value);
    }

    /// Writes a histogram.
    pub(crate) fn histogram(
        &mut self,
        family: &MetricFamily,
        labels: &[&str],
        read: &HistogramSnapshot,
    ) {
        for (bound, count) in read.cumulative() {
            self.value(family, "_bucket", labels, Some(&bound.to_string()), count);
        }
        self.value(family, "_bucket", labels, Some("+Inf"), read.count());
        self.value(family, "_sum", labels, None, read.sum().as_secs_f64());
        self.value(family, "_count", labels, None, read.count());
    }

    /// Returns the exposition.
    pub(crate) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.line(format_args!("# EOF"));
        }
        self.text
    }

    fn value(
        &mut self,
        family: &MetricFamily,
        ending: &str,
        labels: &[&str],
        bound: Option<&str>,
        value: impl Display,
    ) {
        debug_assert_eq!(family.labels.len(), labels.len(), "{}", family.name);
        self.text.push_str(family.name);
        self.text.push_str(ending);
        let named = family.labels.iter().copied().zip(labels.iter().copied());
        for (at, (name, value)) in named.chain(bound.map(|bound| ("le", bound))).enumerate() {
            self.text.push(if at == 0 { '{' } else { ',' });
            self.text.push_str(name);
            self.text.push_str("=\"");
            escape(&mut self.text, value);
            self.text.push('"');
        }
        if !labels.is_empty() || bound.is_some() {
            self.text.push('}');
        }
        self.line(format_args!(" {value}"));
    }

    fn line(&mut self, words: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(words);
        self.text.push('\n');
    }
}

fn escape(text: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_gets_the_format_that_it_prefers() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.5,*/*;q=0.1";
        for (accept, expected) in [
            (None, Format::Prometheus),
            (Some("*/*"), Format::Prometheus),
            (Some("text/plain"), Format::Prometheus),
            (Some(prometheus), Format::OpenMetrics),
            (Some("Application/OpenMetrics-Text"), Format::OpenMetrics),
            (Some("application/openmetrics-text;q=0.1, text/plain"), Format::Prometheus),
            (Some("application/openmetrics-text;q=0"), Format::Prometheus),
        ] {
            assert_eq!(Format::accepted(accept), expected, "{accept:?}");
        }
    }

    #[test]
    fn values_of_labels_are_escaped() {
        let mut text = String::new();
        escape(&mut text, "a\"b\\c\nd");
        assert_eq!(text, r#"a\"b\\c\nd"#);
    }
}
