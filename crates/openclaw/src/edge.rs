//! The only place that reads the environment of the process; it is passed to everything else.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_config::import::{self, App, ImportResult, Platform, SearchContext};
use openclaw_config::install::{InstallError, McpClient};
use openclaw_config::{
    Config, LoadEnvironment, Loaded, NoHome, PROGRAM_VARIABLE, Paths, url_credentials,
};
use openclaw_mcp_client::process::launch::STARTED_FROM;
use openclaw_mcp_server::PdfReader;
use openclaw_oauth::browser::BrowserEnvironment;
use openclaw_oauth::store::KeyOptions;
use openclaw_process::GuardCommand;
use openclaw_secrets::{Environment, Redactor, Resolver, SecretString};
use openclaw_trace::Tracer;

use crate::clipboard::ClipboardProgram;
use crate::error::{CommandError, Context as _};
use openclaw_terminal::pictures::{PictureProtocol, Pictures};

/// As the first argument, runs the program as the guard for another process's servers.
pub(crate) const GUARD_ARGUMENT: &str = "__guard";
/// As the first argument, reads a PDF from stdin and writes its text to stdout.
pub(crate) const PDF_ARGUMENT: &str = "__pdf-text";

/// Set by the completion script of a shell, to the name of the shell.
pub(crate) const COMPLETE_VARIABLE: &str = "OPENCLAW_COMPLETE";
/// Set by the completion scripts of some shells, to the index of the word to complete.
const COMPLETE_INDEX: &str = "_CLAP_COMPLETE_INDEX";

/// Variables with the URL of a proxy, in upper or lower case. They may contain a password, and are
/// read by libraries, too.
const PROXIES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

/// The highest limit of servers and tools of an editor's session, as in the configuration.
const MAX_EDITOR_LIMIT: usize = 1_000;

/// The maximum size of a secret on stdin, in bytes.
#[cfg(feature = "keychain")]
const MAX_SECRET: u64 = 64 * 1024;

/// What a shell wants completed.
pub(crate) struct CompletionRequest {
    /// The name of the shell.
    pub(crate) shell: String,
    /// The words of the command line, the program first.
    pub(crate) words: Vec<OsString>,
    /// The index of the word to complete.
    pub(crate) index: usize,
}

impl CompletionRequest {
    /// Returns the request of the shell that has started this process to complete a line.
    pub(crate) fn of_this_process() -> Option<Self> {
        let shell = variable(COMPLETE_VARIABLE).filter(|shell| !shell.is_empty())?;
        let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
        let words: Vec<OsString> = words.collect();
        let index = variable(COMPLETE_INDEX).and_then(|index| index.parse().ok());
        // Shells pass an empty word where one begins; zsh leaves it out.
        let index = index.unwrap_or(words.len().saturating_sub(1)).min(words.len());
        Some(Self { shell, words, index })
    }
}

/// The path that a configuration is compared by.
fn identity(file: &Path) -> String {
    let file = openclaw_files::canonical(file).unwrap_or_else(|_| file.to_owned());
    file.to_string_lossy().into_owned()
}

/// The environment of this process.
pub(crate) struct Edge {
    pub(crate) redactor: Redactor,
    /// Records spans; off unless a collector is named (`OTEL_EXPORTER_OTLP_ENDPOINT`).
    pub(crate) tracer: Tracer,
    home: Option<PathBuf>,
    config_flag: Option<PathBuf>,
}

impl Edge {
    pub(crate) fn of_this_process(
        redactor: Redactor,
        config_flag: Option<PathBuf>,
        tracer: Tracer,
    ) -> Self {
        let proxies = PROXIES.iter().flat_map(|name| [(*name).to_owned(), name.to_lowercase()]);
        let addresses = proxies.filter_map(|name| variable(&name)).map(|address| {
            if address.contains("://") { address } else { format!("http://{address}") }
        });
        redactor.add_all(&addresses.flat_map(|url| url_credentials(&url)).collect::<Vec<_>>());
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        Self { redactor, tracer, home, config_flag }
    }

    pub(crate) fn environment(&self) -> Environment {
        Environment::new(variable)
    }

    /// The environment for servers of a configuration. It names the configuration, so that this
    /// program can recognize itself as one of its own servers.
    pub(crate) fn environment_of(&self, paths: &Paths) -> Environment {
        let file = identity(&paths.config);
        Environment::new(move |name| match name {
            STARTED_FROM => Some(file.clone()),
            _ => variable(name),
        })
    }

    /// Checks that this process is not a server of this configuration: it would start all of its
    /// servers, and thus itself, without end.
    ///
    /// # Errors
    /// If it is.
    pub(crate) fn check_not_own_server(&self, paths: &Paths) -> Result<(), CommandError> {
        if variable(STARTED_FROM) != Some(identity(&paths.config)) {
            return Ok(());
        }
        let file = paths.config.display();
        Err(CommandError::failed(format!("started as a server of its own configuration, {file}"))
            .hint("remove the entry from `mcp.servers`, or give it another file with `--config`"))
    }

    /// Resolves the secrets that a configuration refers to.
    pub(crate) fn resolver(&self, config: &Config) -> Resolver {
        Resolver::new(config.secrets.clone(), self.environment(), self.redactor.clone())
    }

    /// Returns the configuration file, and the folder of the state.
    pub(crate) fn paths(&self) -> Result<Paths, NoHome> {
        self.paths_with(self.config_flag())
    }

    /// Like [`paths`](Self::paths), with this configuration file, if there is one.
    pub(crate) fn paths_with(&self, file: Option<&Path>) -> Result<Paths, NoHome> {
        Paths::find(file, &|name| std::env::var_os(name), self.home.as_deref())
    }

    /// The configuration file that the user named with `--config`.
    pub(crate) fn config_flag(&self) -> Option<&Path> {
        self.config_flag.as_deref()
    }

    /// A command of ours about the configuration file that is used, to show to the user.
    pub(crate) fn config_command(&self, command: &str) -> String {
        match self.config_flag() {
            None => format!("openclaw {command}"),
            Some(file) => {
                let file = file.to_string_lossy();
                let file = shlex::try_quote(&file).unwrap_or((&*file).into());
                format!("openclaw --config {file} {command}")
            }
        }
    }

    pub(crate) fn load(&self, file: &Path) -> Loaded {
        openclaw_config::load(file, self.load_environment())
    }

    /// Returns a function that reads the file again on each call.
    pub(crate) fn loader(&self, file: &Path) -> Arc<dyn Fn() -> Loaded + Send + Sync> {
        let (file, home) = (file.to_owned(), self.home.clone());
        Arc::new(move || {
            let home = home.as_deref();
            openclaw_config::load(&file, LoadEnvironment { variable: &config_variable, home })
        })
    }

    /// Loads a text as if it were the contents of the file.
    pub(crate) fn load_text(&self, file: &Path, text: &str) -> Loaded {
        openclaw_config::load_text(file, text, self.load_environment())
    }

    /// Makes a path absolute, relative to the current folder.
    pub(crate) fn absolute(&self, path: &str) -> String {
        let absolute = std::path::absolute(path).ok();
        absolute
            .and_then(|path| path.into_os_string().into_string().ok())
            .unwrap_or(path.to_owned())
    }

    /// Whether the user can be prompted: stdin and stderr are terminals.
    pub(crate) fn has_user(&self) -> bool {
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    /// Whether the user can chat: stdin, stdout and stderr are terminals.
    pub(crate) fn is_interactive(&self) -> bool {
        std::io::stdout().is_terminal() && self.has_user()
    }

    /// Whether this is a continuous integration, where a terminal has no user.
    pub(crate) fn is_ci(&self) -> bool {
        variable("CI").is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
    }

    /// Whether lines on stderr can be redrawn.
    pub(crate) fn can_draw(&self) -> bool {
        let is_dumb = variable("TERM").is_none_or(|terminal| terminal == "dumb");
        std::io::stderr().is_terminal() && !is_dumb
    }

    /// Returns how the key of stored logins is kept: in the keychain, unless `OPENCLAW_KEYCHAIN` is
    /// `off`.
    pub(crate) fn key_options(&self) -> KeyOptions {
        KeyOptions { use_keychain: variable("OPENCLAW_KEYCHAIN").is_none_or(|it| it != "off") }
    }

    /// Returns a limit of editor sessions that is set in the environment.
    pub(crate) fn editor_limit(&self, name: &str) -> Result<Option<usize>, CommandError> {
        let Some(value) = variable(name).filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        match value.parse().ok().filter(|limit| *limit <= MAX_EDITOR_LIMIT) {
            Some(limit) => Ok(Some(limit)),
            None => Err(CommandError::usage(format!(
                "{name} must be a whole number from 0 to {MAX_EDITOR_LIMIT}, not `{}`",
                value.escape_debug()
            ))),
        }
    }

    /// Returns the token of `OPENCLAW_GATEWAY_TOKEN`, as the Node OpenClaw reads it.
    pub(crate) fn gateway_token(&self) -> Option<SecretString> {
        let token = variable("OPENCLAW_GATEWAY_TOKEN").filter(|token| !token.trim().is_empty());
        let token = token.map(|token| SecretString::from(token.trim()));
        self.redactor.add_all(&token);
        token
    }

    /// Returns the user's home folder.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Returns the folder of the user's settings (`XDG_CONFIG_HOME`).
    pub(crate) fn config_folder(&self) -> Option<PathBuf> {
        let named = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let named = named.filter(|folder| folder.is_absolute());
        named.or_else(|| Some(self.home.as_ref()?.join(".config")))
    }

    /// Returns where programs are searched for.
    pub(crate) fn search_path(&self) -> String {
        variable("PATH").unwrap_or_default()
    }

    /// Returns the command of the user's editor.
    pub(crate) fn editor(&self) -> String {
        let named = ["VISUAL", "EDITOR"].into_iter().filter_map(variable);
        let usual = if cfg!(windows) { "notepad" } else { "vi" };
        named.into_iter().find(|it| !it.trim().is_empty()).unwrap_or_else(|| usual.to_owned())
    }

    /// Reads a secret from stdin, without the line break at its end.
    #[cfg(feature = "keychain")]
    pub(crate) fn piped_secret(&self) -> std::io::Result<SecretString> {
        use std::io::Read as _;

        let mut text = String::new();
        std::io::stdin().lock().take(MAX_SECRET).read_to_string(&mut text)?;
        let end = text.trim_end_matches(['\r', '\n']).len();
        text.truncate(end);
        Ok(text.into())
    }

    /// Whether a folder is the user's home, or contains it.
    pub(crate) fn is_home(&self, folder: &Path) -> bool {
        self.home_folder().is_some_and(|home| home.starts_with(folder))
    }

    /// The user's home, without links.
    pub(crate) fn home_folder(&self) -> Option<PathBuf> {
        self.home.as_deref().and_then(|home| openclaw_files::canonical(home).ok())
    }

    /// Returns how the terminal shows pictures. A terminal multiplexer does not pass on what the
    /// terminal around it understands, but may show pictures itself.
    pub(crate) fn pictures(&self) -> Pictures {
        if !self.is_interactive() || !self.can_draw() {
            return Pictures::default();
        }
        let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
        let program = variable("TERM_PROGRAM").unwrap_or_default();
        let terminal = variable("TERM").unwrap_or_default();
        match program.as_str() {
            _ if is_set("TMUX") || is_set("STY") => Pictures::unknown(),
            "iTerm.app" | "WezTerm" => Pictures::known(PictureProtocol::ITerm),
            _ if is_set("KITTY_WINDOW_ID")
                || terminal.contains("kitty")
                || program == "ghostty" =>
            {
                Pictures::known(PictureProtocol::Kitty)
            }
            _ => Pictures::unknown(),
        }
    }

    /// Returns the program that reads pictures from the clipboard of the user's desktop.
    pub(crate) fn clipboard(&self) -> Option<ClipboardProgram> {
        let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
        if cfg!(target_os = "macos") {
            Some(ClipboardProgram::MACOS)
        } else if is_set("WAYLAND_DISPLAY") {
            Some(ClipboardProgram::WAYLAND)
        } else {
            is_set("DISPLAY").then_some(ClipboardProgram::X11)
        }
    }

    /// Returns the current folder.
    pub(crate) fn folder(&self) -> Result<PathBuf, CommandError> {
        std::env::current_dir()
            .context("cannot use the current folder")
            .map_err(|error| error.hint("change to a folder that exists"))
    }

    /// Returns what is known about the user's desktop.
    pub(crate) fn desktop(&self) -> BrowserEnvironment {
        let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
        BrowserEnvironment {
            display: is_set("DISPLAY") || is_set("WAYLAND_DISPLAY"),
            ssh: is_set("SSH_CONNECTION"),
            browser_variable: variable("BROWSER"),
            path: variable("PATH"),
            extensions: variable("PATHEXT"),
        }
    }

    /// Finds the servers that other programs on this machine have configured.
    pub(crate) fn servers_elsewhere(&self, only: Option<App>) -> std::io::Result<ImportResult> {
        self.searching(|machine| import::find(machine, only))
    }

    /// Returns the file with the settings of another program.
    pub(crate) fn settings_of(
        &self,
        client: McpClient,
    ) -> std::io::Result<Result<PathBuf, InstallError>> {
        self.searching(|machine| client.file(machine))
    }

    fn searching<T>(&self, search: impl FnOnce(SearchContext<'_>) -> T) -> std::io::Result<T> {
        Ok(search(SearchContext {
            home: self.home.as_deref(),
            cwd: &std::env::current_dir()?,
            platform: Platform::this(),
            variable: &|name| std::env::var_os(name),
            read: &import::read_from_disk,
        }))
    }

    /// Returns the path of this program.
    pub(crate) fn this_program(&self) -> std::io::Result<String> {
        Ok(std::env::current_exe()?.to_string_lossy().into_owned())
    }

    /// Returns the reader of PDF documents: this program, as another process.
    pub(crate) fn pdf_reader(&self) -> Option<PdfReader> {
        let program = std::env::current_exe().ok()?;
        Some(PdfReader { program, args: vec![PDF_ARGUMENT.into()] })
    }

    pub(crate) fn load_environment(&self) -> LoadEnvironment<'_> {
        LoadEnvironment { variable: &config_variable, home: self.home.as_deref() }
    }

    /// Returns the command of the guard that kills the servers if this process is killed (L5);
    /// `None` if the path of this program is unknown.
    pub(crate) fn guard_command(&self) -> Option<GuardCommand> {
        let program = std::env::current_exe().ok()?;
        Some(GuardCommand { program, args: vec![GUARD_ARGUMENT.to_owned()] })
    }
}

/// Whether the terminal has no colours. `anstream` checks this, too, but not where `CI` is set.
pub(crate) fn is_colourless() -> bool {
    let is_dumb = variable("TERM").is_some_and(|terminal| terminal == "dumb");
    is_dumb && variable("CLICOLOR_FORCE").is_none_or(|value| value.is_empty() || value == "0")
}

/// Whether terminals show UTF-8. Only a locale that says otherwise means that they do not: in
/// containers, often none is set.
pub(crate) fn has_utf8() -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let locale = names.into_iter().filter_map(variable).find(|locale| !locale.is_empty());
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Returns a variable of the environment.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn config_variable(name: &str) -> Option<String> {
    let this_program = || std::env::current_exe().ok()?.into_os_string().into_string().ok();
    variable(name).or_else(|| (name == PROGRAM_VARIABLE).then(this_program).flatten())
}
