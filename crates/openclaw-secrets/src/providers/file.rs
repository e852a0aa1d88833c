//! `secret://file/PATH`: the text of a file, without the final line break.

use std::{io, path::Path, sync::Arc};

use async_trait::async_trait;

use super::{Fetch, ProviderContext, expand, text};
use crate::{
    ResolveErrorKind, SecretRef, SecretSettings, SecretString, resolve_error::ProviderFailure,
};

/// Local files.
pub(super) struct File {
    settings: Arc<SecretSettings>,
}

impl File {
    pub(super) fn new(context: &ProviderContext) -> Self {
        Self { settings: context.settings.clone() }
    }
}

#[async_trait]
impl Fetch for File {
    async fn fetch(&self, reference: &SecretRef) -> Result<SecretString, ProviderFailure> {
        let name = reference.name();
        let path = expand(&self.settings, name)?;
        let failed = |error: io::Error| io_failure(name, &path, &error);
        // Checked before opening: opening a pipe blocks until there is a writer.
        let metadata = tokio::fs::metadata(&path).await.map_err(failed)?;
        if !metadata.is_file() {
            let what = if metadata.is_dir() { "is a folder" } else { "is not a regular file" };
            let cause = format!("`{}` {what}", path.display());
            return Err(ProviderFailure::new(ResolveErrorKind::Failed, cause));
        }
        warn_if_readable_by_others(&path, &metadata);
        let file = text::open(&path).await.map_err(failed)?;
        let expected = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        text::read_value(file, expected).await
    }
}

fn io_failure(name: &str, path: &Path, error: &io::Error) -> ProviderFailure {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            let cause = format!("file `{path}` not found");
            let failure = ProviderFailure::new(ResolveErrorKind::NotFound, cause);
            if name.starts_with('/') || name.starts_with("~/") {
                return failure;
            }
            failure.hint(
                "paths are relative to the folder of the configuration; an absolute path has two \
                 slashes, as in `secret://file//etc/token`",
            )
        }
        io::ErrorKind::PermissionDenied => {
            ProviderFailure::new(ResolveErrorKind::Denied, format!("permission denied: `{path}`"))
                .hint("make it readable for the user that runs OpenClaw")
        }
        kind => {
            ProviderFailure::new(ResolveErrorKind::Failed, format!("cannot read `{path}`: {kind}"))
        }
    }
}

#[cfg(unix)]
fn warn_if_readable_by_others(path: &Path, metadata: &std::fs::Metadata) {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let (path, mode) = (path.display(), format!("{mode:03o}"));
        tracing::warn!(%path, %mode, "other users may access this secret; run `chmod 600` on it");
    }
}

#[cfg(not(unix))]
fn warn_if_readable_by_others(_: &Path, _: &std::fs::Metadata) {}
