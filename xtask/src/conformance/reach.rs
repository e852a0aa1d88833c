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
const EXCEPTIONS: &[Exception] = &[];

/// Returns why a pair cannot pass a scenario as a whole, if so.
pub(super) fn exception(pair: Pair, scenario: &str) -> Option<&'static Exception> {
    EXCEPTIONS.iter().find(|it| it.pair == pair && it.scenario == scenario)
}
