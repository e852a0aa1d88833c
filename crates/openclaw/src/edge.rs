//! The only place that looks at the process's surroundings: everything else is handed them.

use std::path::{Path, PathBuf};

use openclaw_config::{Loaded, Paths, Surroundings};
use openclaw_secrets::{Environment, Redactor};

/// What the program knows about where it runs.
pub(crate) struct Edge {
    pub(crate) redactor: Redactor,
    home: Option<PathBuf>,
}

impl Edge {
    pub(crate) fn of_this_process(redactor: Redactor) -> Self {
        Self { redactor, home: std::env::home_dir().filter(|home| !home.as_os_str().is_empty()) }
    }

    pub(crate) fn environment(&self) -> Environment {
        Environment::new(variable)
    }

    pub(crate) fn paths(&self, flag: Option<&Path>) -> Result<Paths, String> {
        Paths::find(flag, &|name| std::env::var_os(name), self.home.as_deref())
            .map_err(|error| error.to_string())
    }

    pub(crate) fn load(&self, file: &Path) -> Loaded {
        let home = self.home.as_deref();
        openclaw_config::load(file, Surroundings { variable: &variable, home })
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
