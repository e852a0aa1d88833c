//! Directories and files that only the user can access.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a directory and its parents, private to the user. Existing directories are left
/// unchanged.
///
/// # Errors
/// If it cannot be created.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Returns options that create files private to the user.
pub fn options() -> OpenOptions {
    #[allow(unused_mut, reason = "only Unix modifies it")]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
