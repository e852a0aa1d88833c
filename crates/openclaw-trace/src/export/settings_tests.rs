//! What the variables mean.

use super::*;

/// Returns the settings for these variables, and the problems with them.
pub(in crate::export) fn read_for(
    signal: Signal,
    variables: &[(&str, &str)],
) -> (Result<Settings, Off>, Vec<String>) {
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let mut problems = Vec::new();
    (Settings::from_variables(signal, &variable, &mut problems), problems)
}

fn read(variables: &[(&str, &str)]) -> (Result<Settings, Off>, Vec<String>) {
    read_for(Signal::Traces, variables)
}

fn settings(variables: &[(&str, &str)]) -> Settings {
    let (settings, problems) = read(variables);
    assert!(problems.is_empty(), "{problems:?}");
    settings.unwrap()
}

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");

#[test]
fn nothing_is_sent_unless_a_collector_is_named() {
    for variables in [
        &[][..],
        &[("OTEL_SERVICE_NAME", "x")],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
        &[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")],
        &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")],
    ] {
        assert_eq!(read(variables).0.unwrap_err(), Off::NotWanted, "{variables:?}");
    }
}

#[test]
fn the_path_is_added_to_the_endpoint_of_all_signals_only() {
    let url = |variables: &[(&str, &str)]| settings(variables).endpoint.to_string();
    assert_eq!(url(&[ENDPOINT]), "http://collector:4318/v1/traces");
    let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces.example/in");
    assert_eq!(url(&[ENDPOINT, traces]), "https://traces.example/in");
    assert_eq!(url(&[("OTEL_TRACES_EXPORTER", "otlp")]), "http://localhost:4318/v1/traces");
}

#[test]
fn what_cannot_work_is_explained() {
    let why = |variables: &[(&str, &str)]| match read(variables).0 {
        Err(Off::Unusable(why)) => why,
        other => panic!("{other:?}"),
    };
    let grpc = why(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
    assert!(grpc.contains("OTEL_EXPORTER_OTLP_PROTOCOL is `grpc`"), "{grpc}");
    let url = why(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "user:hunter2@collector")]);
    assert!(url.contains("must be a URL") && !url.contains("hunter2"), "{url}");
    assert!(why(&[("OTEL_TRACES_EXPORTER", "zipkin")]).contains("`zipkin`"));
}

#[test]
fn all_variables_are_honoured() {
    let settings = settings(&[
        ENDPOINT,
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hunter2, x-team = a"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.01"),
        ("OTEL_SERVICE_NAME", "gateway-1"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=a%2Cb"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
        ("OTEL_BSP_EXPORT_TIMEOUT", "200"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "10"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "100"),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
    ]);
    let [(name, value), (second, _)] = settings.headers.as_slice() else { panic!() };
    assert_eq!((name.as_str(), value.expose()), ("authorization", "Bearer hunter2"));
    assert_eq!(second, "x-team");
    assert!(!format!("{settings:?}").contains("hunter2"));
    assert_eq!(settings.secrets().len(), 2);
    assert_eq!(settings.timeout, Duration::from_millis(2500));
    assert_eq!(settings.sampler, TraceSampler { follows_parent: true, ratio: 0.01 });
    let (delay, timeout) = (Duration::from_millis(100), Duration::from_millis(200));
    assert_eq!(settings.batches, Batches { delay, timeout, queue: 10, size: 10 });
    let value = |key: &str| settings.resource.iter().find(|(known, _)| known == key).cloned();
    assert_eq!(value("service.name").unwrap().1, "gateway-1");
    assert_eq!(value("deployment.environment.name").unwrap().1, "a,b");
    assert!(settings.captures_content && settings.compresses);
}

#[test]
fn invalid_values_are_reported_and_not_used() {
    let (settings, problems) = read(&[
        ENDPOINT,
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
    ]);
    let settings = settings.unwrap();
    assert!(!settings.compresses);
    assert_eq!(settings.batches, Batches::of(Signal::Traces));
    assert_eq!(settings.sampler, TraceSampler::default());
    assert_eq!(problems.len(), 4, "{problems:?}");
}

#[test]
fn log_lines_are_sent_only_if_asked_for_and_have_their_own_variables() {
    let read = |variables: &[(&str, &str)]| read_for(Signal::Logs, variables).0;
    const WANTED: (&str, &str) = ("OTEL_LOGS_EXPORTER", "otlp");
    assert_eq!(read(&[ENDPOINT]).unwrap_err(), Off::NotWanted);
    assert_eq!(read(&[WANTED, ("OTEL_SDK_DISABLED", "true")]).unwrap_err(), Off::NotWanted);
    let url = |variables: &[(&str, &str)]| read(variables).unwrap().endpoint.to_string();
    assert_eq!(url(&[WANTED]), "http://localhost:4318/v1/logs");
    assert_eq!(url(&[WANTED, ENDPOINT]), "http://collector:4318/v1/logs");
    let logs = ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "https://logs.example/in");
    let delay = ("OTEL_BLRP_SCHEDULE_DELAY", "7");
    let settings = read(&[WANTED, ENDPOINT, logs, delay]).unwrap();
    assert_eq!(settings.endpoint.as_str(), "https://logs.example/in");
    assert_eq!(settings.batches.delay, Duration::from_millis(7));
    assert_eq!(read(&[WANTED]).unwrap().batches.delay, Duration::from_secs(1));
}
