//! Pictures on the clipboard of the user's desktop, which another program reads.

use std::io::ErrorKind;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use crate::error::CommandError;

/// The maximum size of a picture, in bytes.
const MAX_PICTURE: u64 = 14 * 1024 * 1024;
/// The timeout of the program that reads the clipboard: the program that owns it may hang.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first bytes of a PNG.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A program that writes the picture on the clipboard to stdout, as PNG.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClipboardProgram {
    program: &'static str,
    args: &'static [&'static str],
}

impl ClipboardProgram {
    pub(crate) const WAYLAND: Self =
        Self { program: "wl-paste", args: &["--no-newline", "--type", "image/png"] };
    pub(crate) const X11: Self = Self {
        program: "xclip",
        args: &["-selection", "clipboard", "-target", "image/png", "-out"],
    };
    pub(crate) const MACOS: Self = Self { program: "pngpaste", args: &["-"] };

    /// Returns the picture.
    ///
    /// # Errors
    /// If there is none, or the program fails, for example because it is not installed.
    pub(crate) async fn read(self) -> Result<Vec<u8>, CommandError> {
        let Self { program, args } = self;
        let no_picture = || CommandError::failed("no image on the clipboard");
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().map_err(|error| {
            let failed = CommandError::failed(format!("cannot start `{program}`"));
            match error.kind() {
                ErrorKind::NotFound => {
                    failed.cause("not found").hint("install it, then use `/paste` again")
                }
                _ => failed.cause(error.to_string()),
            }
        })?;
        let Some(stdout) = child.stdout.take() else { return Err(no_picture()) };
        let mut picture = Vec::new();
        let mut limited = stdout.take(MAX_PICTURE + 1);
        match timeout(PATIENCE, limited.read_to_end(&mut picture)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                return Err(CommandError::failed(format!("cannot read from `{program}`"))
                    .cause(error.to_string()));
            }
            Err(_) => {
                let seconds = PATIENCE.as_secs();
                return Err(CommandError::failed(format!(
                    "`{program}` timed out after {seconds} s"
                )));
            }
        }
        match picture.len() as u64 > MAX_PICTURE {
            true => Err(CommandError::failed("the image is too large")),
            false if !picture.starts_with(PNG) => Err(no_picture()),
            false => Ok(picture),
        }
    }
}
