//! `/paste`: attaches the image on the clipboard to the next message.

use openclaw_protocol::chat::Attachment;

use super::Chat;
use super::attach::{self, MAX_FILES};
use crate::error::CommandError;
use crate::output::Output;
use openclaw_terminal::style::FAINT;

/// Attaches the picture to the next message. Returns whether there is one.
pub(super) async fn paste(chat: &mut Chat<'_>, output: &mut Output) -> bool {
    match picture(chat).await {
        Ok(file) => {
            let size =
                file.content.as_ref().map_or(0, |it| (it.get().len() * 3 / 4).div_ceil(1_000));
            chat.pasted.get_mut().push(file);
            output.folded(format_args!(
                "{FAINT}· attached an image ({size} KB) to the next message{FAINT:#}"
            ));
            true
        }
        Err(error) => {
            output.error(&error);
            false
        }
    }
}

async fn picture(chat: &mut Chat<'_>) -> Result<Attachment, CommandError> {
    if chat.pasted.get_mut().len() >= MAX_FILES {
        return Err(CommandError::failed(format!("a message has at most {MAX_FILES} files")));
    }
    let Some(program) = chat.clipboard else {
        return Err(CommandError::failed(
            "no clipboard found: it needs a Wayland, X11 or macOS desktop",
        )
        .hint("use `@path` to attach a file"));
    };
    let picture = program.read().await?;
    let name = format!("pasted-{}.png", chat.pasted.get_mut().len() + 1);
    attach::attachment(&picture, Some("image/png"), name)
        .map_err(|cause| CommandError::failed("cannot attach the image").cause(cause))
}
