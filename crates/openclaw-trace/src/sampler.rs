//! Which traces are recorded (`OTEL_TRACES_SAMPLER`).

use crate::context::SpanContext;
use crate::ids::TraceId;

/// Decides whether a trace is recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceSampler {
    /// Whether a parent's decision is followed. Otherwise only the ratio counts.
    pub follows_parent: bool,
    /// The share of traces to record, from 0 to 1.
    pub ratio: f64,
}

impl Default for TraceSampler {
    fn default() -> Self {
        Self { follows_parent: true, ratio: 1.0 }
    }
}

impl TraceSampler {
    /// Returns the sampler with a name of the specification and its argument; `None` if there is
    /// none with that name.
    pub fn named(name: &str, ratio: Option<f64>) -> Option<Self> {
        let ratio = ratio.filter(|ratio| (0.0..=1.0).contains(ratio)).unwrap_or(1.0);
        let (follows_parent, ratio) = match name {
            "always_on" => (false, 1.0),
            "always_off" => (false, 0.0),
            "traceidratio" => (false, ratio),
            "parentbased_always_on" => (true, 1.0),
            "parentbased_always_off" => (true, 0.0),
            "parentbased_traceidratio" => (true, ratio),
            _ => return None,
        };
        Some(Self { follows_parent, ratio })
    }

    pub(crate) fn decide(&self, trace: TraceId, parent: Option<&SpanContext>) -> bool {
        match parent {
            Some(parent) if self.follows_parent => parent.is_sampled(),
            _ => self.is_within(trace),
        }
    }

    /// Programs with the same ratio record the same traces.
    fn is_within(&self, trace: TraceId) -> bool {
        const ALL: u64 = 1 << 63;
        self.ratio >= 1.0 || trace.low_bits() < (self.ratio * ALL as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Ids;

    #[test]
    fn a_ratio_records_about_its_share() {
        let (ids, sampler) =
            (Ids::random(), TraceSampler::named("traceidratio", Some(0.25)).unwrap());
        let recorded = (0..40_000).filter(|_| sampler.decide(ids.trace(), None)).count();
        assert!((9_000..11_000).contains(&recorded), "{recorded}");
    }

    #[test]
    fn the_parent_decides_unless_the_sampler_ignores_it() {
        let ids = Ids::random();
        let parent = SpanContext::root(ids.trace(), ids.span(), true);
        let decide = |name: &str| {
            TraceSampler::named(name, None).unwrap().decide(parent.trace_id(), Some(&parent))
        };
        assert!(decide("parentbased_always_off") && !decide("always_off"));
        assert!(TraceSampler::named("jaeger_remote", None).is_none());
    }
}
