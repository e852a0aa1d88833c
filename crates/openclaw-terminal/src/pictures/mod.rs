//! Pictures on terminals that can show them.

mod bitmap;
#[cfg_attr(not(unix), allow(dead_code, reason = "terminals are asked on Unix only"))]
pub mod query;
mod sixel;

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crossterm::terminal::WindowSize;

use self::bitmap::Bitmap;
pub use self::query::TerminalAnswers;

/// The size of a chunk of the kitty protocol, in bytes.
const CHUNK: usize = 4_096;
/// Larger pictures are not shown, in bytes of base64.
const MAX_DATA: usize = 16 * 1024 * 1024;
/// The maximum width and height of a scaled picture, in pixels. xterm shows no larger ones.
const MAX_ROOM: usize = 1_000;
/// The size of a character on terminals that do not tell it, in pixels: that of a VT340.
const CELL: (usize, usize) = (10, 20);
/// The lines of the screen that a picture leaves to the text.
const TEXT_LINES: usize = 4;

/// How a terminal shows pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureProtocol {
    /// The graphics protocol of kitty.
    Kitty,
    /// The inline images of iTerm2.
    ITerm,
    /// Sixel graphics, with this many colours.
    #[cfg_attr(not(unix), allow(dead_code, reason = "terminals are asked on Unix only"))]
    Sixel(usize),
}

/// How the terminal shows pictures, if it can: known from the environment, or set when the terminal
/// has answered.
#[derive(Debug, Clone, Default)]
pub struct Pictures {
    protocol: Arc<OnceLock<PictureProtocol>>,
    asks: bool,
}

impl Pictures {
    /// A terminal that is known to use this protocol.
    pub fn known(protocol: PictureProtocol) -> Self {
        Self { protocol: Arc::new(OnceLock::from(protocol)), asks: false }
    }

    /// A terminal that has to be asked.
    pub fn unknown() -> Self {
        Self { protocol: Arc::default(), asks: true }
    }

    /// Whether the terminal has to be asked.
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Sets the protocol that the terminal has answered with.
    pub fn found(&self, protocol: Option<PictureProtocol>) {
        if let Some(protocol) = protocol {
            // The first answer stays.
            let _ = self.protocol.set(protocol);
        }
    }

    /// Returns the sequence that shows a picture; `None` if the terminal cannot show this one. The
    /// data is base64.
    pub fn sequence(&self, mime_type: &str, data: &str) -> Option<String> {
        let protocol = self.protocol.get()?;
        protocol.sequence(mime_type, data, Room::of_this_terminal())
    }
}

impl PictureProtocol {
    /// The data is checked: anything but base64 could control the terminal.
    fn sequence(self, mime_type: &str, data: &str, room: Room) -> Option<String> {
        let is_base64 = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/' | b'=');
        if data.is_empty() || data.len() > MAX_DATA || !data.bytes().all(is_base64) {
            return None;
        }
        let bitmap = || Bitmap::decode(&STANDARD.decode(data).ok()?, room);
        match self {
            Self::ITerm => Some(format!("\u{1b}]1337;File=inline=1:{data}\u{7}\n")),
            Self::Kitty if mime_type == "image/png" && room.fits_png(data) => {
                Some(in_chunks("a=T,f=100", data))
            }
            Self::Kitty => {
                let Bitmap { width, height, pixels } = bitmap()?;
                let pixels = STANDARD.encode(pixels.as_flattened());
                Some(in_chunks(&format!("a=T,f=32,s={width},v={height}"), &pixels))
            }
            Self::Sixel(colours) => Some(sixel::encode(&bitmap()?, colours) + "\n"),
        }
    }
}

/// Returns a command of the kitty protocol with its data.
fn in_chunks(command: &str, data: &str) -> String {
    let chunks = data.as_bytes().chunks(CHUNK);
    let last = chunks.len().saturating_sub(1);
    let mut sequence = String::with_capacity(data.len() + 32 * (last + 1));
    for (at, chunk) in chunks.enumerate() {
        let head = if at == 0 { format!("{command},") } else { String::new() };
        let more = u8::from(at < last);
        sequence.push_str(&format!("\u{1b}_G{head}m={more};"));
        sequence.push_str(&String::from_utf8_lossy(chunk));
        sequence.push_str("\u{1b}\\");
    }
    sequence.push('\n');
    sequence
}

/// The largest size that a picture is shown in, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Room {
    width: usize,
    height: usize,
}

impl Room {
    fn of_this_terminal() -> Self {
        let nothing = WindowSize { rows: 0, columns: 0, width: 0, height: 0 };
        Self::of(&crossterm::terminal::window_size().unwrap_or(nothing))
    }

    /// The width of the terminal, and its height without some lines of text.
    fn of(size: &WindowSize) -> Self {
        let cells = |cells: u16, usual: usize| if cells == 0 { usual } else { usize::from(cells) };
        let (columns, rows) = (cells(size.columns, 80), cells(size.rows, 24));
        let cell = |pixels: u16, cells: usize, usual: usize| match usize::from(pixels) / cells {
            0 => usual,
            pixels => pixels,
        };
        let width = columns * cell(size.width, columns, CELL.0);
        let lines = rows.saturating_sub(TEXT_LINES).max(1);
        let height = lines * cell(size.height, rows, CELL.1);
        Self { width: width.min(MAX_ROOM), height: height.min(MAX_ROOM) }
    }

    /// Returns the size of a picture that is scaled down to fit. It is never scaled up.
    fn fit(self, width: usize, height: usize) -> (usize, usize) {
        if width <= self.width && height <= self.height {
            (width, height)
        } else if width * self.height > height * self.width {
            (self.width, (height * self.width / width).max(1))
        } else {
            ((width * self.height / height).max(1), self.height)
        }
    }

    /// Whether a PNG in base64 need not be scaled down.
    fn fits_png(self, data: &str) -> bool {
        // The signature, and the start of the first chunk: its width and height.
        let head = data.get(..32).and_then(|head| STANDARD.decode(head).ok());
        let side = |at: usize| {
            let bytes = head.as_ref()?.get(at..at + 4)?.try_into().ok()?;
            usize::try_from(u32::from_be_bytes(bytes)).ok()
        };
        let (width, height) = (side(16), side(20));
        width.is_some_and(|it| it <= self.width) && height.is_some_and(|it| it <= self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal of 80 columns and 24 lines that does not tell its size in pixels.
    const ROOM: Room = Room { width: 800, height: 400 };

    /// A PNG of a single colour.
    fn png(width: u32, height: u32) -> String {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Rgb);
        let pixels = [200, 100, 0].repeat(width as usize * height as usize);
        encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
        STANDARD.encode(bytes)
    }

    fn heads(sequence: &str) -> Vec<&str> {
        sequence.split("\u{1b}_G").skip(1).map(|it| it.split(';').next().unwrap()).collect()
    }

    #[test]
    fn a_large_picture_is_sent_in_chunks() {
        let data = format!("{}{}", &png(8, 8)[..32], "A".repeat(2 * CHUNK));
        let sequence = PictureProtocol::Kitty.sequence("image/png", &data, ROOM).unwrap();
        assert_eq!(heads(&sequence), ["a=T,f=100,m=1", "m=1", "m=0"]);
        assert!(PictureProtocol::ITerm.sequence("image/jpeg", &data, ROOM).is_some());
    }

    #[test]
    fn a_picture_that_is_too_wide_is_scaled_down_for_kitty() {
        let sequence = PictureProtocol::Kitty.sequence("image/png", &png(1600, 16), ROOM).unwrap();
        assert_eq!(heads(&sequence)[0], "a=T,f=32,s=800,v=8,m=1");
    }

    #[test]
    fn data_that_could_control_the_terminal_is_not_sent() {
        for data in ["", "AAAA\u{7}", "\u{1b}\\"] {
            let sequence = PictureProtocol::ITerm.sequence("image/png", data, ROOM);
            assert_eq!(sequence, None, "{data:?}");
        }
    }

    #[test]
    fn a_picture_fits_the_terminal_and_leaves_room_for_text() {
        let size = |columns, rows, width, height| WindowSize { columns, rows, width, height };
        assert_eq!(Room::of(&size(80, 24, 0, 0)), ROOM);
        assert_eq!(Room::of(&size(0, 0, 0, 0)), ROOM, "a terminal that does not know its size");
        assert_eq!(Room::of(&size(60, 24, 360, 312)), Room { width: 360, height: 260 });
        assert_eq!(Room::of(&size(500, 200, 5000, 4000)), Room { width: 1000, height: 1000 });
        assert_eq!(ROOM.fit(10, 10), (10, 10));
        assert_eq!(ROOM.fit(1600, 10), (800, 5));
        assert_eq!(ROOM.fit(100, 40_000), (1, 400));
        assert_eq!(ROOM.fit(40_000, 1), (800, 1));
    }

    #[test]
    fn a_terminal_shows_nothing_until_its_protocol_is_known() {
        let (pictures, data) = (Pictures::unknown(), png(8, 8));
        assert!(pictures.asks() && pictures.sequence("image/png", &data).is_none());
        pictures.found(Some(PictureProtocol::Sixel(16)));
        assert!(pictures.sequence("image/png", &data).unwrap().starts_with("\u{1b}P"));
    }
}
