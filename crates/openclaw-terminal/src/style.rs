//! The styles of texts.

use anstyle::{AnsiColor, Style};

/// What failed.
pub const ERROR: Style = AnsiColor::Red.on_default().bold();
/// What may be a problem.
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// What to do about it.
pub const HINT: Style = AnsiColor::Cyan.on_default();
/// A good state, and a success.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// A bad state.
pub const BAD: Style = AnsiColor::Red.on_default();
/// Headings and names.
pub const STRONG: Style = Style::new().bold();
/// What matters less.
pub const FAINT: Style = Style::new().dimmed();
