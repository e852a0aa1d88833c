//! Text on a terminal: streamed Markdown, word wrapping, pictures, styles, and ASCII for terminals that show
//! nothing else. Everything returns text; nothing here writes to a terminal.

pub mod ascii;
pub mod markdown;
pub mod pictures;
pub mod style;
pub mod wrap;
