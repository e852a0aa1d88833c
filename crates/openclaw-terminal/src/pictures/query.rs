//! Asks a terminal whether it shows sixel graphics. Every terminal answers the last question, for
//! its device attributes (DA1), so the answers are complete when that has arrived.

use super::PictureProtocol;

/// Asks for the number of colours of graphics, and for the device attributes.
pub const QUERY: &str = "\u{1b}[?1;1;0S\u{1b}[c";
/// The attribute of terminals with sixel graphics.
const SIXEL: &str = "4";
/// The colours of terminals that do not tell their number.
const USUAL_COLOURS: usize = 256;

const START: &str = "\u{1b}[?";

/// The answers of a terminal, and what was typed meanwhile.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TerminalAnswers {
    /// Whether the last answer has arrived.
    pub is_complete: bool,
    /// How the terminal shows pictures.
    pub protocol: Option<PictureProtocol>,
    /// What was typed before, between and after the answers.
    pub typed: String,
}

impl TerminalAnswers {
    /// Finds the answers in what was read from a terminal.
    pub fn of(read: &str) -> Self {
        let (mut answers, mut rest, mut colours) = (Self::default(), read, USUAL_COLOURS);
        while let Some((before, after)) = rest.split_once(START) {
            answers.typed.push_str(before);
            let length = after.find(|c: char| !c.is_ascii_digit() && c != ';');
            let (values, following) = after.split_at(length.unwrap_or(after.len()));
            let mut following = following.chars();
            let end = following.next();
            rest = following.as_str();
            let mut values = values.split(';');
            match end {
                Some('c') => {
                    answers.is_complete = true;
                    let has_sixel = values.any(|value| value == SIXEL);
                    answers.protocol = has_sixel.then_some(PictureProtocol::Sixel(colours));
                }
                // Item 1, status 0: success.
                Some('S') if values.next() == Some("1") && values.next() == Some("0") => {
                    let told = values.next().and_then(|it| it.parse().ok());
                    colours = told.unwrap_or(USUAL_COLOURS).clamp(2, USUAL_COLOURS);
                }
                _ => {}
            }
        }
        answers.typed.push_str(rest);
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_with_sixel_says_so_and_how_many_colours_it_has() {
        for (read, protocol) in [
            ("\u{1b}[?1;0;16S\u{1b}[?63;1;2;4;6c", Some(PictureProtocol::Sixel(16))),
            ("\u{1b}[?1;0;65536S\u{1b}[?62;4c", Some(PictureProtocol::Sixel(256))),
            ("\u{1b}[?1;3;0S\u{1b}[?62;4c", Some(PictureProtocol::Sixel(256))),
            ("\u{1b}[?4c", Some(PictureProtocol::Sixel(256))),
            ("\u{1b}[?64;1;2;6;9;15;18;21;22;44c", None),
            ("\u{1b}[?1;2c", None),
        ] {
            let answers = TerminalAnswers::of(read);
            assert!(answers.is_complete, "{read:?}");
            assert_eq!((answers.protocol, answers.typed.as_str()), (protocol, ""), "{read:?}");
        }
    }

    #[test]
    fn what_is_typed_meanwhile_is_kept() {
        let answers = TerminalAnswers::of("he\u{1b}[?1;0;256Sll\u{1b}[?62;4co\r");
        assert_eq!(answers.typed, "hello\r");
        assert!(answers.is_complete && answers.protocol.is_some());
    }

    #[test]
    fn an_answer_that_has_not_arrived_is_not_complete() {
        for read in ["", "hello", "\u{1b}[?1;0;256S", "\u{1b}[?62;4"] {
            let answers = TerminalAnswers::of(read);
            assert!(!answers.is_complete && answers.protocol.is_none(), "{read:?}: {answers:?}");
        }
    }
}
