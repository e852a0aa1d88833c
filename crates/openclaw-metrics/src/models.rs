//! The series of one model.

use crate::counter::{Counter, Counters};
use crate::labels::{Success, TokenKind};

/// Cost is added up in billionths of a dollar.
pub(crate) const NANO_USD: f64 = 1e9;

/// The requests to one model.
#[derive(Debug, Default)]
pub struct ModelSeries {
    pub(crate) model: Box<str>,
    pub(crate) requests: Counters<Success>,
    pub(crate) tokens: Counters<TokenKind>,
    pub(crate) cost_nano_usd: Counter,
}

impl ModelSeries {
    pub(crate) fn new(model: Box<str>) -> Self {
        Self { model, ..Self::default() }
    }

    /// Counts a request.
    pub fn answered(&self, success: Success) {
        self.requests.of(success).increment();
    }

    /// Counts tokens.
    pub fn used(&self, kind: TokenKind, tokens: u64) {
        self.tokens.of(kind).add(tokens);
    }

    /// Counts the cost of a request, as its provider reports it. Anything but a sum of money is
    /// ignored.
    pub fn cost(&self, usd: f64) {
        if usd.is_finite() && (0.0..1e6).contains(&usd) {
            self.cost_nano_usd.add((usd * NANO_USD) as u64);
        }
    }
}
