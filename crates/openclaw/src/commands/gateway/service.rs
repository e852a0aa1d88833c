//! The gateway as a service of the user: a systemd unit or a launchd agent, as a plain file.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use openclaw_process::exit_words;

use crate::edge::Edge;
use crate::error::{CommandError, Context as _};

/// The name of the systemd unit, and the label of the launchd agent.
const UNIT: &str = "openclaw-gateway.service";
const LABEL: &str = "ai.openclaw.gateway";

/// Which program manages services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manager {
    Systemd,
    Launchd,
}

/// The service of the user.
#[derive(Debug, Clone)]
pub(super) struct Service {
    manager: Manager,
    pub(super) file: PathBuf,
}

/// What the service runs.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) program: String,
    pub(super) config: String,
    pub(super) state: String,
    /// Where programs are searched for: a service has a short search path otherwise.
    pub(super) path: String,
    pub(super) log: String,
}

impl Service {
    /// The service of this system; `None` if services are not supported on it.
    pub(super) fn of_this_system(edge: &Edge) -> Option<Self> {
        if cfg!(target_os = "macos") {
            let file = edge.home()?.join("Library/LaunchAgents").join(format!("{LABEL}.plist"));
            Some(Self { manager: Manager::Launchd, file })
        } else if cfg!(target_os = "linux") {
            let file = edge.config_folder()?.join("systemd/user").join(UNIT);
            Some(Self { manager: Manager::Systemd, file })
        } else {
            None
        }
    }

    /// The service, if it is installed.
    pub(super) fn installed(edge: &Edge) -> Option<Self> {
        Self::of_this_system(edge).filter(|service| service.file.exists())
    }

    /// The text of its file.
    pub(super) fn text(&self, of: &Program) -> String {
        match self.manager {
            Manager::Systemd => unit(of),
            Manager::Launchd => agent(of),
        }
    }

    /// Starts it, now and at every login.
    pub(super) fn enable(&self) -> Result<(), CommandError> {
        match self.manager {
            Manager::Systemd => {
                run("systemctl", &["--user", "daemon-reload"])?;
                run("systemctl", &["--user", "enable", "--now", UNIT])
            }
            Manager::Launchd => self.load(),
        }
    }

    /// Starts it.
    pub(super) fn start(&self) -> Result<(), CommandError> {
        match self.manager {
            Manager::Systemd => run("systemctl", &["--user", "start", UNIT]),
            Manager::Launchd => self.load(),
        }
    }

    /// Stops it, and does not start it any more.
    pub(super) fn disable(&self) -> Result<(), CommandError> {
        match self.manager {
            Manager::Systemd => run("systemctl", &["--user", "disable", "--now", UNIT]),
            Manager::Launchd => run("launchctl", &["unload", "-w", &self.file.to_string_lossy()]),
        }
    }

    /// Tells the manager that the file was removed. A failure has no consequences.
    pub(super) fn forget(&self) {
        if self.manager == Manager::Systemd {
            let _ = run("systemctl", &["--user", "daemon-reload"]);
        }
    }

    /// The command that starts it by hand.
    pub(super) fn by_hand(&self) -> String {
        match self.manager {
            Manager::Systemd => format!("systemctl --user enable --now {UNIT}"),
            Manager::Launchd => format!("launchctl load -w {}", self.file.display()),
        }
    }

    fn load(&self) -> Result<(), CommandError> {
        run("launchctl", &["load", "-w", &self.file.to_string_lossy()])
    }
}

/// Runs a command of the service manager.
fn run(program: &str, args: &[&str]) -> Result<(), CommandError> {
    let line = format!("{program} {}", args.join(" "));
    let done = Command::new(program).args(args).stdin(Stdio::null()).output();
    let done = done.context(format!("cannot run `{line}`"))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let lines = said.lines().take(10).map(ToOwned::to_owned).collect();
    Err(CommandError::failed(format!("`{line}` {}", exit_words(done.status)))
        .with(|failure| failure.last_lines = lines))
}

fn unit(of: &Program) -> String {
    let Program { program, config, state, path, log } = of;
    let command = [program, "gateway", "run", "--config", config]
        .map(|word| quoted(word).replace('$', "$$"))
        .join(" ");
    let (state, path) = (format!("OPENCLAW_STATE_DIR={state}"), format!("PATH={path}"));
    format!(
        "# Written by `openclaw gateway install`; `openclaw gateway uninstall` removes it.\n\
         [Unit]\n\
         Description=OpenClaw gateway\n\
         \n\
         [Service]\n\
         ExecStart={command}\n\
         Environment={}\n\
         Environment={}\n\
         Restart=on-failure\n\
         RestartSec=5\n\
         StandardOutput=append:{log}\n\
         StandardError=append:{log}\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        quoted(&state),
        quoted(&path),
        log = log.replace('%', "%%"),
    )
}

/// Quotes a word for a unit file: `%` would be replaced. In a command, `$` would be, too.
fn quoted(word: impl AsRef<str>) -> String {
    let mut text = String::from("\"");
    for c in word.as_ref().chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '%' => text.extend([c, c]),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

fn agent(of: &Program) -> String {
    let Program { program, config, state, path, log } = of;
    let string = |text: &str| format!("<string>{}</string>", escaped(text));
    let words = [program, "gateway", "run", "--config", config].map(string).join("");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \
         \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <!-- Written by `openclaw gateway install`; `openclaw gateway uninstall` removes it. -->\n\
         <plist version=\"1.0\">\n<dict>\n\
         <key>Label</key>{}\n\
         <key>ProgramArguments</key><array>{words}</array>\n\
         <key>EnvironmentVariables</key><dict>\n\
         <key>OPENCLAW_STATE_DIR</key>{}\n\
         <key>PATH</key>{}\n\
         </dict>\n\
         <key>RunAtLoad</key><true/>\n\
         <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n\
         <key>StandardOutPath</key>{log}\n\
         <key>StandardErrorPath</key>{log}\n\
         </dict>\n</plist>\n",
        string(LABEL),
        string(state),
        string(path),
        log = string(log),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Writes the file of a service. Only the user can read it: it contains their search path.
pub(super) fn write(file: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        openclaw_files::make_folder(folder)?;
    }
    openclaw_files::replace(file, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Program {
        Program {
            program: "/opt/my tools/openclaw".to_owned(),
            config: "/home/me/50% \"new\" $HOME.json".to_owned(),
            state: "/home/me/.openclaw".to_owned(),
            path: "/usr/bin:/home/me/bin".to_owned(),
            log: "/home/me/.openclaw/logs/gateway.log".to_owned(),
        }
    }

    #[test]
    fn a_unit_runs_exactly_this_command() {
        let unit = unit(&program());
        let command = r#"ExecStart="/opt/my tools/openclaw" "gateway" "run" "--config" "/home/me/50%% \"new\" $$HOME.json""#;
        assert!(unit.lines().any(|line| line == command), "{unit}");
        assert!(unit.contains("\nEnvironment=\"PATH=/usr/bin:/home/me/bin\"\n"), "{unit}");
        assert!(unit.contains("\nStandardError=append:/home/me/.openclaw/logs/gateway.log\n"));
        assert!(unit.contains("\nRestart=on-failure\n") && unit.ends_with("default.target\n"));
    }

    #[test]
    fn a_launchd_agent_is_escaped_and_starts_again_only_after_a_failure() {
        let program = Program { config: "/a&<b>.json".to_owned(), ..program() };
        let agent = agent(&program);
        assert!(agent.contains("<string>/a&amp;&lt;b&gt;.json</string>"), "{agent}");
        assert!(agent.contains("<key>SuccessfulExit</key><false/>"), "{agent}");
    }
}
