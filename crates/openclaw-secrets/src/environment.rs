//! [`Environment`]: the host's variables, passed in from the edge of the program.

use std::{collections::BTreeMap, fmt, sync::Arc};

/// The variables that every child process inherits: enough to run, with the right locale, and to
/// reach the network through a proxy or with a private certificate authority. None is a credential.
const BASELINE: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TZ",
    "TMPDIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "SystemRoot",
    "SystemDrive",
    "ComSpec",
    "PATHEXT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "HOMEDRIVE",
    "HOMEPATH",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "ProgramFiles",
    "ProgramFiles(x86)",
    "PROCESSOR_ARCHITECTURE",
];

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Looks up environment variables. Clones share the source.
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
    /// Creates an environment from a lookup function.
    pub fn new(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { lookup: Arc::new(lookup) }
    }

    /// Returns the environment of a child process (K5): a small baseline plus the variables in
    /// `named`. Tokens and model keys of this program are not included unless named.
    ///
    /// ```
    /// # use openclaw_secrets::Environment;
    /// let host: Environment =
    ///     [("PATH", "/bin"), ("MODEL_KEY", "k"), ("EDITOR", "vi")].into_iter().collect();
    /// let child = host.for_child(["EDITOR"]);
    /// assert_eq!(child.keys().collect::<Vec<_>>(), ["EDITOR", "PATH"]);
    /// ```
    pub fn for_child<'a>(
        &self,
        named: impl IntoIterator<Item = &'a str>,
    ) -> BTreeMap<String, String> {
        let names = BASELINE.iter().copied().chain(named);
        names.filter_map(|name| Some((name.to_owned(), self.get(name)?))).collect()
    }

    /// Returns the value of a variable, even if it is empty.
    pub fn get(&self, name: &str) -> Option<String> {
        (self.lookup)(name)
    }

    /// Returns the value of a variable that is set and not empty.
    #[cfg(any(feature = "aws", feature = "gcp", feature = "vault"))]
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
