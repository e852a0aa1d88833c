//! The cycles that are known. New ones are not added.

pub(super) const CYCLES: &[(&str, &[&str])] = &[];
