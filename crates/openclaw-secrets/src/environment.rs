//! [`Environment`]: the host's variables, read at the edge of the program and handed in.

use std::{collections::BTreeMap, fmt, sync::Arc};

/// What every child process gets of the host environment: enough to run, to be understood, and to
/// reach the network where that takes a proxy or an authority of its own. Nothing that could be a
/// credential.
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

    /// The environment of a child process (K5): a small baseline, and what was named for it. Tokens
    /// and model keys of this program are not among it unless somebody named them.
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

    /// The value of a variable, also if it is empty.
    pub fn get(&self, name: &str) -> Option<String> {
        (self.lookup)(name)
    }

    /// The value of a variable that says something.
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
