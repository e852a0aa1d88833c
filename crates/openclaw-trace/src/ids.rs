//! Ids of traces and spans: never zero, shown as lower-case hexadecimal digits.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use data_encoding::HEXLOWER;

/// The id of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(u128);

/// The id of a span.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(u64);

impl TraceId {
    /// Parses 32 lower-case hexadecimal digits; `None` if they are others, or all zero.
    pub fn parse(text: &str) -> Option<Self> {
        let id = (text.len() == 32 && is_hex(text)).then(|| u128::from_str_radix(text, 16).ok());
        id.flatten().filter(|id| *id != 0).map(Self)
    }

    /// The bytes, the most significant one first.
    pub fn bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// The lower 63 bits, which are random in every version of the specification.
    pub(crate) fn low_bits(self) -> u64 {
        u64::try_from(self.0 & u128::from(u64::MAX >> 1)).unwrap_or_default()
    }
}

impl SpanId {
    /// Parses 16 lower-case hexadecimal digits; `None` if they are others, or all zero.
    pub fn parse(text: &str) -> Option<Self> {
        let id = (text.len() == 16 && is_hex(text)).then(|| u64::from_str_radix(text, 16).ok());
        id.flatten().filter(|id| *id != 0).map(Self)
    }

    /// The bytes, the most significant one first.
    pub fn bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

/// Whether these are lower-case hexadecimal digits: `from_str_radix` also takes signs and upper case.
pub(crate) fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Appends bytes as hexadecimal digits: the formatting of numbers takes several times as long.
pub(crate) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + bytes.len() * 2, 0);
    HEXLOWER.encode_mut(bytes, &mut out[start..]);
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEXLOWER.encode_mut_str(&self.bytes(), &mut [0; 32]))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEXLOWER.encode_mut_str(&self.bytes(), &mut [0; 16]))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Creates ids without a system call: a counter from a random start, through the mixing function
/// of `SplitMix64`. Ids are unique, not secret.
#[derive(Debug)]
pub(crate) struct Ids {
    next: AtomicU64,
    /// The upper half of trace ids is mixed with this.
    salt: u64,
}

impl Ids {
    /// Starts at a random place.
    pub(crate) fn random() -> Self {
        let mut seed = [0; 16];
        if getrandom::fill(&mut seed).is_err() {
            // Without a source of randomness: unique in time and per process.
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let now = now.unwrap_or_default().as_nanos() ^ u128::from(std::process::id());
            seed = now.to_le_bytes();
        }
        let seed = u128::from_le_bytes(seed);
        let [low, high] = [seed, seed >> 64].map(|half| (half & u128::from(u64::MAX)) as u64);
        Self { next: AtomicU64::new(low), salt: high }
    }

    fn number(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        // An odd step visits every number once.
        mixed(self.next.fetch_add(STEP, Ordering::Relaxed))
    }

    pub(crate) fn span(&self) -> SpanId {
        SpanId(self.number().max(1))
    }

    pub(crate) fn trace(&self) -> TraceId {
        let low = self.number();
        let high = mixed(low ^ self.salt);
        TraceId((u128::from(high) << 64 | u128::from(low)).max(1))
    }
}

fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_survive_their_text() {
        let ids = Ids::random();
        let traces: HashSet<TraceId> = (0..10_000).map(|_| ids.trace()).collect();
        let spans: HashSet<SpanId> = (0..10_000).map(|_| ids.span()).collect();
        assert_eq!((traces.len(), spans.len()), (10_000, 10_000));
        for id in traces.iter().take(10) {
            assert_eq!(TraceId::parse(&id.to_string()), Some(*id));
        }
        for id in spans.iter().take(10) {
            assert_eq!(SpanId::parse(&id.to_string()), Some(*id));
        }
    }

    #[test]
    fn zero_upper_case_signs_and_other_lengths_are_no_ids() {
        for text in ["0000000000000000", "00F067AA0BA902B7", "+0f067aa0ba902b7", "0f067aa0ba902b"] {
            assert_eq!(SpanId::parse(text), None, "{text}");
        }
        assert_eq!(TraceId::parse(&"0".repeat(32)), None);
    }
}
