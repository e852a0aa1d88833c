//! Pictures on terminals that can show them.

/// The size of a chunk of the kitty protocol, in bytes.
const CHUNK: usize = 4_096;
/// Larger pictures are not shown, in bytes of base64.
const MAX_DATA: usize = 16 * 1024 * 1024;

/// How a terminal shows pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PictureProtocol {
    /// The graphics protocol of kitty, for PNG.
    Kitty,
    /// The inline images of iTerm2.
    ITerm,
}

impl PictureProtocol {
    /// Returns the sequence that shows a picture; `None` if the terminal cannot show this one. The data
    /// is base64, which is checked: anything else could control the terminal.
    pub(crate) fn sequence(self, mime_type: &str, data: &str) -> Option<String> {
        let is_base64 = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/' | b'=');
        if data.is_empty() || data.len() > MAX_DATA || !data.bytes().all(is_base64) {
            return None;
        }
        match self {
            Self::ITerm => Some(format!("\u{1b}]1337;File=inline=1:{data}\u{7}\n")),
            Self::Kitty if mime_type == "image/png" => {
                let chunks = data.as_bytes().chunks(CHUNK);
                let last = chunks.len() - 1;
                let mut sequence = String::with_capacity(data.len() + 32 * (last + 1));
                for (at, chunk) in chunks.enumerate() {
                    let head = if at == 0 { "a=T,f=100," } else { "" };
                    let more = u8::from(at < last);
                    sequence.push_str(&format!("\u{1b}_G{head}m={more};"));
                    sequence.push_str(&String::from_utf8_lossy(chunk));
                    sequence.push_str("\u{1b}\\");
                }
                sequence.push('\n');
                Some(sequence)
            }
            Self::Kitty => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_picture_is_sent_in_chunks() {
        let data = "A".repeat(2 * CHUNK + 4);
        let sequence = PictureProtocol::Kitty.sequence("image/png", &data).unwrap();
        let heads: Vec<&str> =
            sequence.split("\u{1b}_G").skip(1).map(|it| it.split(';').next().unwrap()).collect();
        assert_eq!(heads, ["a=T,f=100,m=1", "m=1", "m=0"]);
        assert!(PictureProtocol::Kitty.sequence("image/jpeg", &data).is_none());
        assert!(PictureProtocol::ITerm.sequence("image/jpeg", &data).is_some());
    }

    #[test]
    fn data_that_could_control_the_terminal_is_not_sent() {
        for data in ["", "AAAA\u{7}", "\u{1b}\\"] {
            assert_eq!(PictureProtocol::ITerm.sequence("image/png", data), None, "{data:?}");
        }
    }
}
