//! The documentation, the dashboard and the alert rules agree with the metrics.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::collections::BTreeSet;
use std::path::Path;

use openclaw_metrics::families;

fn read(file: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    std::fs::read_to_string(docs.join(file)).unwrap()
}

/// All words that look like names of our metrics.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("openclaw_")).collect()
}

fn samples() -> BTreeSet<String> {
    families::ALL.iter().flat_map(families::MetricFamily::samples).collect()
}

#[test]
fn the_dashboard_and_the_alert_rules_use_metrics_that_exist() {
    let samples = samples();
    for file in ["observability/grafana.json", "observability/alerts.yml"] {
        let text = read(file);
        let used = names(&text);
        assert!(used.len() > 10, "{file}: {used:?}");
        let unknown: Vec<_> = used.iter().filter(|name| !samples.contains(**name)).collect();
        assert!(unknown.is_empty(), "{file} uses metrics that do not exist: {unknown:?}");
    }
}

#[test]
fn the_dashboard_shows_every_metric() {
    let text = read("observability/grafana.json");
    let used = names(&text);
    for family in families::ALL {
        let is_shown = family.samples().iter().any(|sample| used.contains(sample.as_str()));
        assert!(is_shown, "{} is not in the dashboard", family.name);
    }
}

#[test]
fn selectors_and_groupings_use_labels_that_exist() {
    let known: BTreeSet<&str> = families::ALL.iter().flat_map(|it| it.labels).copied().collect();
    let of_prometheus = ["instance", "job", "le"];
    for file in ["observability/grafana.json", "observability/alerts.yml"] {
        let text = read(file);
        let grouped = text.split("by (").skip(1).filter_map(|rest| rest.split(')').next());
        for label in grouped.flat_map(|labels| labels.split(',').map(str::trim)) {
            assert!(known.contains(label) || of_prometheus.contains(&label), "{file}: {label}");
        }
    }
}

#[test]
fn every_metric_is_documented_with_its_labels() {
    let text = read("observability.md");
    for family in families::ALL {
        let name = match family.kind {
            families::MetricKind::Counter => format!("`{}_total`", family.name),
            families::MetricKind::Gauge | families::MetricKind::Histogram => {
                format!("`{}`", family.name)
            }
        };
        let row = text.lines().find(|line| line.starts_with(&format!("| {name} |")));
        let row = row.unwrap_or_else(|| panic!("{name} is not in docs/observability.md"));
        for label in family.labels {
            assert!(row.contains(&format!("`{label}`")), "{row}");
        }
        assert!(row.contains(family.help), "{row}");
    }
}
