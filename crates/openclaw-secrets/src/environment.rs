//! [`Environment`]: the host's variables, read at the edge of the program and handed in.

use std::{collections::BTreeMap, fmt, sync::Arc};

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Looks up environment variables. A clone shares the same source.
///
/// ```
/// use openclaw_secrets::Environment;
///
/// let host = Environment::new(|name| std::env::var(name).ok());
/// let fixed: Environment = [("GITHUB_TOKEN", "t0ken")].into_iter().collect();
/// # let _ = (host, fixed);
/// ```
#[derive(Clone)]
pub struct Environment {
    lookup: Arc<Lookup>,
}

impl Environment {
    /// Variables as `lookup` knows them.
    pub fn new(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { lookup: Arc::new(lookup) }
    }

    /// The value of a variable, also if it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        (self.lookup)(name)
    }

    /// The value of a variable that says something.
    #[cfg(any(feature = "gcp", feature = "vault"))]
    pub(crate) fn get_set(&self, name: &str) -> Option<String> {
        self.get(name).filter(|value| !value.is_empty())
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        let variables: BTreeMap<String, String> =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self::new(move |name| variables.get(name).cloned())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment")
    }
}
