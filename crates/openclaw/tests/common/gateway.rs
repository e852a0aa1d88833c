//! A gateway in another process.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use openclaw_testkit::processes;
use serde_json::Value;

use super::LONG;

/// A running gateway. The process is killed on drop.
pub(crate) struct RunningGateway {
    pub(crate) child: Child,
    pub(crate) url: String,
    pub(crate) token: String,
}

impl RunningGateway {
    /// Starts `openclaw gateway run`, without output, and waits until it listens. `folder` is its
    /// state folder.
    pub(crate) fn start(mut command: Command, folder: &Path) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self::of(command.spawn().unwrap(), folder)
    }

    /// Waits until this process listens.
    pub(crate) fn of(mut child: Child, folder: &Path) -> Self {
        let file = folder.join("gateway.json");
        let state = || -> Option<Value> {
            let state: Value = serde_json::from_slice(&std::fs::read(&file).ok()?).ok()?;
            // An earlier gateway may have left its file.
            (state["pid"] == child.id()).then_some(state)
        };
        let mut found = None;
        processes::wait_until(LONG, || {
            found = state();
            found.is_some()
        });
        let Some(state) = found else {
            let _ = child.kill();
            panic!("the gateway does not listen: {:?}", child.wait());
        };
        let text = |key: &str| state[key].as_str().unwrap_or_default().to_owned();
        let (url, token) = (text("url"), text("token"));
        Self { child, url, token }
    }
}

impl Drop for RunningGateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
