//! Checks that the suite has exactly the scenarios of our table.

use super::reference::{SCENARIOS, VERSIONS};

/// Returns the differences between the suite's `list --client` and our table, one line each.
pub(super) fn differences(listing: &str) -> Vec<String> {
    let listed: Vec<_> = listing.lines().filter_map(scenario).collect();
    let mut found = Vec::new();
    for (name, versions) in &listed {
        let Some((_, runs)) = SCENARIOS.iter().find(|(known, _)| known == name) else {
            found.push(format!("`{name}` is in the suite, but not in our table"));
            continue;
        };
        for version in VERSIONS {
            if versions.contains(&version) != runs.iter().any(|(run, _)| *run == version) {
                found.push(format!("our table is wrong about whether `{name}` is in {version}"));
            }
        }
    }
    let gone = SCENARIOS.iter().filter(|(known, _)| !listed.iter().any(|(name, _)| name == known));
    found.extend(gone.map(|(name, _)| format!("`{name}` is in our table, but not in the suite")));
    found
}

/// Parses the name and the versions of a line like `  - tools_call [2025-11-25,2026-07-28]`.
pub(super) fn scenario(line: &str) -> Option<(&str, Vec<&str>)> {
    let (name, versions) = line.trim().strip_prefix("- ")?.split_once(" [")?;
    Some((name, versions.trim_end_matches(']').split(',').collect()))
}

#[cfg(test)]
mod tests {
    use super::super::reference::{NO_REFERENCE, REFUSING};
    use super::*;

    fn listing() -> String {
        let mut text = "Client scenarios (test against a client):\n".to_owned();
        for (name, runs) in SCENARIOS {
            let versions: Vec<_> = runs.iter().map(|(version, _)| *version).collect();
            text += &format!("  - {name} [{}]\n", versions.join(","));
        }
        // With a version that is not under test.
        text.replace("tools_call [", "tools_call [2025-06-18,")
    }

    #[test]
    fn a_suite_with_exactly_our_scenarios_has_no_differences() {
        assert!(differences(&listing()).is_empty(), "{:?}", differences(&listing()));
    }

    #[test]
    fn a_scenario_that_our_table_lacks_is_reported() {
        let listing = listing() + "  - brand-new [2026-07-28]\n";
        assert_eq!(differences(&listing), ["`brand-new` is in the suite, but not in our table"]);
    }

    #[test]
    fn a_scenario_in_another_version_or_no_longer_an_extension_is_reported() {
        for (before, now) in [
            ("initialize [2025-11-25]", "initialize [2026-07-28]"),
            ("auth/dpop [extension]", "auth/dpop [2026-07-28]"),
        ] {
            assert_eq!(differences(&listing().replace(before, now)).len(), 2, "{now}");
        }
    }

    #[test]
    fn every_scenario_is_in_the_table_once_and_runs_in_known_versions() {
        let names: Vec<_> = SCENARIOS.iter().map(|(name, _)| *name).collect();
        for (name, runs) in SCENARIOS {
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{name}");
            assert!(!runs.is_empty(), "{name}");
            assert!(runs.iter().all(|(version, _)| VERSIONS.contains(version)), "{name}");
        }
        for name in NO_REFERENCE.iter().chain(REFUSING) {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn a_suite_that_lists_nothing_lacks_everything() {
        assert_eq!(differences("").len(), SCENARIOS.len());
    }
}
