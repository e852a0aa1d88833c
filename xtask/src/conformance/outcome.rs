//! The outcome of one scenario, and its verdict.

use serde_json::Value;

/// The outcome of one run of a scenario.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) passed: usize,
    /// Failed checks and warnings, with the suite's reason.
    pub(super) failed: Vec<String>,
    /// Whether the suite exited by itself with success. In some scenarios it succeeds with a client
    /// that did nothing at all, and in some it ignores the client's exit status.
    pub(super) suite_is_content: bool,
    pub(super) client_failed: bool,
}

impl Outcome {
    /// Counts the suite's checks; informational and skipped ones do not count.
    pub(super) fn count(&mut self, checks: &Value) {
        for check in checks.as_array().into_iter().flatten() {
            let text = |key: &str| check[key].as_str().unwrap_or_default();
            match text("status") {
                "SUCCESS" => self.passed += 1,
                "FAILURE" | "WARNING" => {
                    let reason = [text("errorMessage"), text("description")];
                    let reason = reason.into_iter().find(|reason| !reason.is_empty());
                    self.failed.push(format!("{}: {}", text("name"), reason.unwrap_or_default()));
                }
                _ => {}
            }
        }
    }

    /// Returns what is wrong; `Ok` if the outcome is at least as good as the reference.
    pub(super) fn verdict(&self, reference: usize) -> Result<(), &'static str> {
        if self.passed == 0 && self.failed.is_empty() {
            Err("no checks")
        } else if !self.failed.is_empty() {
            Err("failed checks")
        } else if self.client_failed {
            Err("client failed")
        } else if self.passed < reference {
            Err("below reference")
        } else if !self.suite_is_content {
            Err("suite failed")
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(statuses: &[&str]) -> Outcome {
        let mut outcome = Outcome { suite_is_content: true, ..Outcome::default() };
        let checks = statuses.iter().map(|status| json!({"name": "Check", "status": status}));
        outcome.count(&checks.collect());
        outcome
    }

    #[test]
    fn a_verdict_follows_from_the_checks_and_the_reference() {
        for (statuses, reference, verdict) in [
            (&["SUCCESS", "INFO", "SUCCESS", "SKIPPED"][..], 2, Ok(())),
            (&["SUCCESS", "INFO"], 2, Err("below reference")),
            (&["SUCCESS", "WARNING"], 1, Err("failed checks")),
            (&["INFO"], 0, Err("no checks")),
        ] {
            assert_eq!(outcome(statuses).verdict(reference), verdict, "{statuses:?}");
        }
    }

    #[test]
    fn a_failed_client_is_a_failure_even_if_the_suite_succeeds() {
        let failed = Outcome { client_failed: true, ..outcome(&["SUCCESS"]) };
        assert_eq!(failed.verdict(1), Err("client failed"));
    }

    #[test]
    fn a_suite_that_did_not_succeed_is_a_failure() {
        let stuck = Outcome { suite_is_content: false, ..outcome(&["SUCCESS"]) };
        assert_eq!(stuck.verdict(1), Err("suite failed"));
    }
}
