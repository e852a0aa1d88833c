//! The pairs of clients and servers that the hub connects, and what those of different eras can reach.

/// The era of the server behind the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerEra {
    /// With a handshake, up to 2025-11-25.
    Legacy,
    /// Without, since 2026-07-28.
    Modern,
}

impl ServerEra {
    /// The era of a version.
    pub(super) fn of(version: &str) -> Self {
        if version >= "2026-07-28" { Self::Modern } else { Self::Legacy }
    }

    /// What the reference server is started as.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// A client of this version, before a server of this era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) version: &'static str,
    pub(super) server: ServerEra,
}

const fn pair(version: &'static str, server: ServerEra) -> Pair {
    Pair { version, server }
}

/// All pairs under test.
pub(super) const PAIRS: [Pair; 6] = [
    pair("2025-06-18", ServerEra::Legacy),
    pair("2025-06-18", ServerEra::Modern),
    pair("2025-11-25", ServerEra::Legacy),
    pair("2025-11-25", ServerEra::Modern),
    pair("2026-07-28", ServerEra::Modern),
    pair("2026-07-28", ServerEra::Legacy),
];

/// A scenario in which a pair passes fewer checks than a client passes directly.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exception {
    pair: Pair,
    scenario: &'static str,
    /// The checks that it passes.
    pub(super) passed: usize,
    /// Why not all.
    pub(super) reason: &'static str,
}

/// What the eras of a pair cannot express.
const EXCEPTIONS: &[Exception] = &[
    Exception {
        pair: pair("2025-11-25", ServerEra::Modern),
        scenario: "server-sse-polling",
        passed: 0,
        reason: "since 2026-07-28 no server closes the stream of a call for a while",
    },
    before_legacy("input-required-result-basic-elicitation", 1, NO_KEYS),
    before_legacy("input-required-result-ignore-extra-params", 1, NO_KEYS),
    before_legacy(
        "input-required-result-multiple-input-requests",
        1,
        "an earlier server asks for one input at a time",
    ),
    before_legacy(
        "input-required-result-missing-input-response",
        1,
        "input without a state continues nothing: the tool would run once more, so it is refused",
    ),
    before_legacy(
        "input-required-result-capability-check",
        1,
        "an earlier server is told the abilities of its client once, in the handshake",
    ),
];

const NO_KEYS: &str = "the requests of an earlier server have no keys, which the scenario expects";

const fn before_legacy(scenario: &'static str, passed: usize, reason: &'static str) -> Exception {
    Exception { pair: pair("2026-07-28", ServerEra::Legacy), scenario, passed, reason }
}

/// Returns why a pair cannot pass a scenario as a whole, if so.
pub(super) fn exception(pair: Pair, scenario: &str) -> Option<&'static Exception> {
    EXCEPTIONS.iter().find(|it| it.pair == pair && it.scenario == scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_of_a_pair_under_test_of_different_eras() {
        for exception in EXCEPTIONS {
            let Pair { version, server } = exception.pair;
            assert!(PAIRS.contains(&exception.pair), "{}", exception.scenario);
            assert_ne!(ServerEra::of(version), server, "{}", exception.scenario);
        }
    }
}
