//! Starts spans, and hands those that are recorded to a sink.

use std::borrow::Cow;
use std::sync::Arc;

use openclaw_secrets::Redactor;

use crate::context::SpanContext;
use crate::ids::Ids;
use crate::record::{Sink, SpanKind, SpanRecorder};
use crate::sampler::TraceSampler;
use crate::span::Span;

/// Starts spans. Clones share everything.
#[derive(Debug, Clone, Default)]
pub struct Tracer(Option<Arc<SpanRecorder>>);

impl Tracer {
    /// Records nothing. Contexts of other programs are passed on.
    pub fn off() -> Self {
        Self(None)
    }

    /// Hands the spans that `sampler` selects to `sink`. With a redactor, the contents of calls and
    /// conversations are recorded, too.
    pub fn new(sink: Arc<dyn Sink>, sampler: TraceSampler, content: Option<Redactor>) -> Self {
        Self(Some(Arc::new(SpanRecorder { ids: Ids::random(), sampler, content, sink })))
    }

    /// Whether spans may be recorded.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Starts a span: a part of `parent`, or the first one of a trace. One that is not sampled costs
    /// two ids and no allocation, one of a tracer that is off costs nothing.
    pub fn start(
        &self,
        name: impl Into<Cow<'static, str>>,
        kind: SpanKind,
        parent: Option<&SpanContext>,
    ) -> Span {
        let Some(recorder) = &self.0 else { return Span::passing(parent.cloned()) };
        let trace = parent.map_or_else(|| recorder.ids.trace(), SpanContext::trace_id);
        let is_sampled = recorder.sampler.decide(trace, parent);
        let span = recorder.ids.span();
        let context = match parent {
            Some(parent) => parent.child(span, is_sampled),
            None => SpanContext::root(trace, span, is_sampled),
        };
        if !is_sampled {
            return Span::passing(Some(context));
        }
        let parent = parent.map(SpanContext::span_id);
        Span::recording(Arc::clone(recorder), context, parent, name.into(), kind)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::record::{AttributeValue, SpanRecord};

    #[derive(Debug, Default)]
    struct Kept(Mutex<Vec<SpanRecord>>);

    impl Sink for Kept {
        fn end(&self, span: SpanRecord) {
            self.0.lock().unwrap().push(span);
        }
    }

    fn tracer(ratio: f64, content: Option<Redactor>) -> (Tracer, Arc<Kept>) {
        let kept = Arc::<Kept>::default();
        let sampler = TraceSampler { ratio, ..TraceSampler::default() };
        (Tracer::new(Arc::clone(&kept) as _, sampler, content), kept)
    }

    #[test]
    fn spans_form_a_tree() {
        let (tracer, kept) = tracer(1.0, None);
        let root = tracer.start("root", SpanKind::Server, None);
        let child = tracer.start("child", SpanKind::Client, root.context());
        child.set("n", 1_u64);
        child.set("n", 2_u64);
        child.fail("timeout", "");
        drop(child);
        drop(root);
        let kept = kept.0.lock().unwrap();
        let [child, root] = kept.as_slice() else { panic!("{kept:?}") };
        assert_eq!(child.parent, Some(root.context.span_id()));
        assert_eq!(child.context.trace_id(), root.context.trace_id());
        assert_eq!(root.parent, None);
        let text = |text: &'static str| AttributeValue::from(text);
        assert_eq!(
            child.attributes,
            [("n", AttributeValue::Int(2)), ("error.type", text("timeout"))]
        );
    }

    #[test]
    fn what_is_not_sampled_is_passed_on_as_such() {
        let (tracer, kept) = tracer(0.0, None);
        let root = tracer.start("root", SpanKind::Server, None);
        let child = tracer.start("child", SpanKind::Client, root.context());
        let (root, child) = (root.context().unwrap().clone(), child.context().unwrap().clone());
        assert!(!child.is_sampled() && child.trace_id() == root.trace_id());
        assert_ne!(child.span_id(), root.span_id());
        assert!(kept.0.lock().unwrap().is_empty());
    }

    #[test]
    fn a_tracer_that_is_off_passes_on_what_it_gets() {
        assert!(Tracer::off().start("a", SpanKind::Internal, None).context().is_none());
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent = SpanContext::parse(parent).unwrap().carrying(None, Some("a=b"));
        let span = Tracer::off().start("a", SpanKind::Internal, Some(&parent));
        assert_eq!(span.context(), Some(&parent));
        assert!(!span.is_recorded());
    }

    #[test]
    fn content_is_recorded_only_if_switched_on_and_without_secrets() {
        let redactor = Redactor::new();
        redactor.add(&"hunter2-hunter2".into());
        for (content, expected) in [(None, 0), (Some(redactor), 1)] {
            let (tracer, kept) = tracer(1.0, content);
            let span = tracer.start("a", SpanKind::Internal, None);
            span.set_content("args", || "the key is hunter2-hunter2".to_owned());
            drop(span);
            let kept = kept.0.lock().unwrap();
            assert_eq!(kept[0].attributes.len(), expected);
            assert!(!format!("{kept:?}").contains("hunter2"));
        }
    }
}
