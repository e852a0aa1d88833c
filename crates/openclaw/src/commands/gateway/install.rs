//! `openclaw gateway install | uninstall`: the gateway as a service of the user.

use std::path::Path;

use serde_json::json;

use super::background::log_path;
use super::service::{self, Program, Service};
use super::stop;
use crate::cli::ServiceArgs;
use crate::commands::sessions::agree;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::{Output, printable};
use openclaw_terminal::style::{FAINT, GOOD};

fn this_system(edge: &Edge) -> Result<Service, CommandError> {
    Service::of_this_system(edge).ok_or_else(|| {
        CommandError::failed("services are supported with systemd (Linux) and launchd (macOS) only")
            .hint("`openclaw gateway start` starts the gateway in the background")
    })
}

/// Shows the file, and writes it if the user agrees; then starts the service.
pub(super) fn install(args: &ServiceArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let service = this_system(edge)?;
    let paths = edge.paths()?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let program = Program {
        program: edge.this_program().context("cannot find this program")?,
        config: edge.absolute(&text(&paths.config)),
        state: edge.absolute(&text(&paths.state)),
        path: edge.search_path(),
        log: edge.absolute(&text(&log_path(&paths.state))),
    };
    let unit = service.text(&program);
    if !output.json {
        output.line(format_args!("{FAINT}{}:{FAINT:#}\n", service.file.display()));
        output.line(printable(&unit));
        output.flush();
    }
    let question =
        format!("Write {} and start the gateway at every login?", service.file.display());
    let way_out = "use `--yes` to install without confirmation, `--dry-run` to show the file only";
    if args.dry_run {
        if output.json {
            output.value(&json!({ "ok": true, "installed": false, "text": unit }));
        }
        return Ok(Exit::Ok);
    }
    if !args.yes && !agree(&question, way_out, edge, output)? {
        output.line("Nothing was written.");
        return Ok(Exit::Failed);
    }
    if let Some(folder) = log_path(&paths.state).parent() {
        openclaw_files::make_folder(folder).context("cannot create the folder of the log")?;
    }
    service::write(&service.file, &unit)
        .context(format!("cannot write {}", service.file.display()))?;
    // One that was started by hand would keep the service from starting.
    stop::stopped(edge)?;
    let by_hand = format!("the file is written; start it with `{}`", service.by_hand());
    service.enable().map_err(|error| error.hint(by_hand))?;
    match output.json {
        true => {
            output.value(&json!({ "ok": true, "installed": true, "file": text(&service.file) }));
        }
        false => {
            output.line(format_args!("{GOOD}✓{GOOD:#} installed and started"));
            output.folded(format_args!(
                "{FAINT}Variables of this shell, such as API keys, are not passed on: keep them as \
                 secrets (`openclaw secrets set`). `openclaw gateway logs` shows the log.{FAINT:#}"
            ));
        }
    }
    Ok(Exit::Ok)
}

/// Stops the service and removes its file.
pub(super) fn uninstall(edge: &Edge, output: &mut Output) -> CommandResult {
    let service = this_system(edge)?;
    let is_installed = service.file.exists();
    if is_installed {
        // The file is removed in any case: then it does not start at the next login.
        if let Err(error) = service.disable() {
            output.error(&error);
        }
        std::fs::remove_file(&service.file)
            .context(format!("cannot remove {}", service.file.display()))?;
        service.forget();
    }
    match (output.json, is_installed) {
        (true, _) => output.value(&json!({ "ok": true, "removed": is_installed })),
        (false, true) => {
            output.line(format_args!("{GOOD}✓{GOOD:#} removed {}", service.file.display()));
        }
        (false, false) => output.line("The service is not installed."),
    }
    Ok(Exit::Ok)
}
