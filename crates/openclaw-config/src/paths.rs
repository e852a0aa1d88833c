//! Locates the configuration file and the state folder (C1).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Overrides the configuration file.
const CONFIG_VARIABLE: &str = "OPENCLAW_CONFIG_PATH";
/// Overrides the state folder.
const STATE_VARIABLE: &str = "OPENCLAW_STATE_DIR";

/// Where the configuration and the state are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The configuration file; it may not exist.
    pub config: PathBuf,
    /// How the file was chosen.
    pub chosen_by: ChosenBy,
    /// The state folder; it may not exist.
    pub state: PathBuf,
}

/// How the configuration file was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChosenBy {
    /// `--config`.
    Flag,
    /// `OPENCLAW_CONFIG_PATH`.
    Environment,
    /// By default: `openclaw.json` in the state folder.
    Default,
}

/// There is no home folder, and no variable that replaces it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this user has no home folder")]
pub struct NoHome;

impl Paths {
    /// Determines the paths from the `--config` flag, the environment and the user's home folder.
    ///
    /// # Errors
    /// If none of them determines the configuration file.
    pub fn find(
        flag: Option<&Path>,
        variable: &dyn Fn(&str) -> Option<OsString>,
        home: Option<&Path>,
    ) -> Result<Self, NoHome> {
        let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let state = set(STATE_VARIABLE).or_else(|| Some(home?.join(".openclaw")));
        let (config, chosen_by) = match (flag, set(CONFIG_VARIABLE)) {
            (Some(flag), _) => (flag.to_path_buf(), ChosenBy::Flag),
            (None, Some(path)) => (path, ChosenBy::Environment),
            (None, None) => {
                (state.as_ref().ok_or(NoHome)?.join("openclaw.json"), ChosenBy::Default)
            }
        };
        // Without a home folder, state is kept next to the configuration file.
        let beside = || config.parent().unwrap_or(Path::new("")).join(".openclaw");
        Ok(Self { state: state.unwrap_or_else(beside), config, chosen_by })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(
        flag: Option<&str>,
        variables: &[(&str, &str)],
        home: Option<&str>,
    ) -> Result<Paths, NoHome> {
        let variable = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| OsString::from(value))
        };
        Paths::find(flag.map(Path::new), &variable, home.map(Path::new))
    }

    #[test]
    fn the_flag_beats_the_variables_and_the_variables_beat_the_default() {
        let variables = [(CONFIG_VARIABLE, "/c.json"), (STATE_VARIABLE, "/state")];
        let paths = find(Some("x.json"), &variables, Some("/home/user")).unwrap();
        assert_eq!((paths.config.to_str(), paths.chosen_by), (Some("x.json"), ChosenBy::Flag));
        let paths = find(None, &variables, Some("/home/user")).unwrap();
        assert_eq!(paths.config, Path::new("/c.json"));
        let paths = find(None, &variables[1..], Some("/home/user")).unwrap();
        assert_eq!(paths.config, Path::new("/state/openclaw.json"));
        let paths = find(None, &[], Some("/home/user")).unwrap();
        assert_eq!(paths.config, Path::new("/home/user/.openclaw/openclaw.json"));
        assert_eq!(paths.state, Path::new("/home/user/.openclaw"));
    }

    #[test]
    fn an_empty_variable_counts_as_unset_and_no_home_is_an_error() {
        assert_eq!(find(None, &[(CONFIG_VARIABLE, "")], None), Err(NoHome));
        assert!(find(Some("x.json"), &[], None).is_ok());
    }
}
