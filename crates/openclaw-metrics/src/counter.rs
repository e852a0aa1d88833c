//! Counters and gauges: relaxed atomics.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::labels::Label;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds a number.
    pub fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    /// Returns the sum.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that grows and shrinks.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// Adds a number, which may be negative.
    pub fn add(&self, number: i64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    /// Returns the current value.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One number for each value of a label.
#[derive(Debug)]
pub struct ByLabel<L, T> {
    numbers: Box<[T]>,
    label: PhantomData<L>,
}

impl<L: Label, T: Default> Default for ByLabel<L, T> {
    fn default() -> Self {
        Self { numbers: L::ALL.iter().map(|_| T::default()).collect(), label: PhantomData }
    }
}

impl<L: Label, T> ByLabel<L, T> {
    /// Returns the number of a value.
    pub fn of(&self, value: L) -> &T {
        &self.numbers[value.index()]
    }

    /// Returns all values with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (L, &T)> {
        L::ALL.iter().copied().zip(&self.numbers)
    }
}

/// A counter for each value of a label.
pub type Counters<L> = ByLabel<L, Counter>;
/// A gauge for each value of a label.
pub type LabelledGauges<L> = ByLabel<L, Gauge>;
