//! Goes over a text once: cuts out spoofed markers and control tokens, notes what is suspicious.
//!
//! The prefilter says where to look, the automaton looks. The automaton never steps back over what
//! it has read, and leaves a stretch only in its root state, so each character is read at most once,
//! and nothing that straddles two stretches is lost.

use std::ops::Range;

use crate::automaton::{AUTOMATON, Automaton, Pattern, ROOT, State};
use crate::finding::{Findings, Suspicion};
use crate::fold::{self, CLASSES, Class, HIDDEN, SKIP};
use crate::patterns::{Cue, Meaning};
use crate::prefilter::{NEAR, Prefilter};
use crate::spelling;

/// What stands in place of a marker. Something must: were the marker just dropped, the pieces left
/// and right of it could make up another (`<|im_<|im_start|>start|>`). No pattern begins or ends
/// inside these words, so nothing new comes about, and the model sees that something was there.
pub(crate) const REMOVED_MARKER: &str = "[removed marker]";
/// What stands in place of a control token.
pub(crate) const REMOVED_TOKEN: &str = "[removed token]";

/// How far after a cue the rest of the phrase may come, in bytes.
const CUE_REACH: usize = 96;

/// More than the longest pattern has characters that count; a power of two.
const REMEMBERED: usize = 64;

/// How long, in bytes, to go on looking closely where there is much to look at: finding out each
/// time that it is so would cost more.
const LONGEST_STAY: usize = 1024;

/// What a scan took, for the test that it is linear.
#[cfg(test)]
#[derive(Debug, Default)]
struct Effort {
    /// Characters that the automaton read.
    steps: usize,
    /// Stretches that the prefilter found.
    stretches: usize,
    /// Bytes that the prefilter went over.
    searched: usize,
}

/// The result of a scan: the text up to `copied`, cleaned, and what was noticed.
pub(crate) struct Scan<'t> {
    text: &'t str,
    /// Where each of the last characters that count began.
    starts: [usize; REMEMBERED],
    /// How many characters that count have been read.
    counted: usize,
    cues: [Option<usize>; Cue::COUNT],
    /// The last `<|`: where it begins and ends, and how many characters counted until then.
    bar: Option<(usize, usize, usize)>,
    look_until: usize,
    cleaned: String,
    copied: usize,
    last_cut: Option<(usize, &'static str)>,
    findings: Findings,
    #[cfg(test)]
    effort: Effort,
}

impl<'t> Scan<'t> {
    /// Scans the text; what is changed is appended to `cleaned` as it goes.
    pub(crate) fn run(text: &'t str, cleaned: String) -> Self {
        let mut scan = Self {
            text,
            starts: [0; REMEMBERED],
            counted: 0,
            cues: [None; Cue::COUNT],
            bar: None,
            look_until: 0,
            cleaned,
            copied: 0,
            last_cut: None,
            findings: Findings::default(),
            #[cfg(test)]
            effort: Effort::default(),
        };
        scan.look_where_told(Prefilter::new(text.as_bytes()));
        scan
    }

    /// Whether anything was cut.
    pub(crate) fn has_cut(&self) -> bool {
        self.last_cut.is_some()
    }

    /// What was handed in with the whole text, cleaned, appended, and the findings.
    pub(crate) fn finish(mut self) -> (String, Findings) {
        self.cleaned.push_str(&self.text[self.copied..]);
        (self.cleaned, self.findings)
    }

    /// The findings alone.
    pub(crate) fn into_findings(self) -> Findings {
        self.findings
    }

    fn look_where_told(&mut self, mut prefilter: Prefilter<'_>) {
        let (mut read, mut stay) = (0, 0);
        while let Some(stretch) = prefilter.next(read) {
            #[cfg(test)]
            {
                self.effort.stretches += 1;
            }
            stay =
                if stretch.start < read + NEAR { (2 * stay + NEAR).min(LONGEST_STAY) } else { 0 };
            read = self.look(stretch.start, stretch.end + stay);
        }
        #[cfg(test)]
        {
            self.effort.searched = prefilter.searched;
        }
    }

    /// Looks closely from `start` at least to `until`, and on while something may be going on;
    /// returns how far it came.
    fn look(&mut self, start: usize, until: usize) -> usize {
        let mut at = self.read(start, until);
        // The end of a control token is nothing that the prefilter looks for.
        while at < self.text.len() && self.may_close_bar() {
            at = self.read(at, at + REMEMBERED);
        }
        at
    }

    fn may_close_bar(&self) -> bool {
        self.bar.is_some_and(|(_, _, counted)| self.counted - counted < REMEMBERED)
    }

    /// Reads from `start` at least to `until`, and on to where nothing can be going on.
    fn read(&mut self, start: usize, until: usize) -> usize {
        let automaton = &AUTOMATON;
        let steps = automaton.steps();
        let text = self.text.as_bytes();
        let (mut at, mut state, mut counted) = (start, ROOT, self.counted);
        self.look_until = until;
        // Only a match changes how far to look: until then it stays in a register.
        let mut look_until = until;
        while at < text.len() && (at < look_until || state != ROOT) {
            #[cfg(test)]
            {
                self.effort.steps += 1;
            }
            let start = at;
            let mut class = fold::class_of_byte(text[at]);
            // ASCII has a way of its own here, on which the width need not be computed.
            if usize::from(class) < CLASSES {
                at += 1;
            } else {
                let (whole, width) = fold::class_at(text, at);
                at += width;
                class = whole;
                if usize::from(class) >= CLASSES {
                    self.counted = counted;
                    state = self.step_specially(automaton, state, class, start..at);
                    (counted, look_until) = (self.counted, self.look_until);
                    continue;
                }
            }
            // What does not count leads nowhere, and must not report a match once more.
            if class == SKIP {
                continue;
            }
            self.starts[counted % REMEMBERED] = start;
            counted += 1;
            state = steps.step(state, class);
            if steps.is_match(state) {
                self.counted = counted;
                if self.matched(automaton.matches(state), at) {
                    state = ROOT;
                }
                look_until = self.look_until;
            }
        }
        self.counted = counted;
        at
    }

    /// A step for what is not one character that counts.
    #[cold]
    fn step_specially(
        &mut self,
        automaton: &Automaton,
        state: State,
        class: Class,
        place: Range<usize>,
    ) -> State {
        if class == HIDDEN && spelling::begins_hidden_text(self.text, place.start) {
            self.findings.note(Suspicion::HiddenText, place.start);
        }
        fold::pair(class).into_iter().flatten().fold(state, |state, half| {
            self.starts[self.counted % REMEMBERED] = place.start;
            self.counted += 1;
            let state = automaton.steps().step(state, half);
            let cut = automaton.steps().is_match(state)
                && self.matched(automaton.matches(state), place.end);
            if cut { ROOT } else { state }
        })
    }

    /// Deals with the patterns that end at `end`; says whether something was cut.
    #[cold]
    #[inline(never)]
    fn matched(&mut self, patterns: &[Pattern], end: usize) -> bool {
        patterns.iter().any(|pattern| {
            let start = self.starts[self.counted.wrapping_sub(pattern.length) % REMEMBERED];
            // To cut out a text costs checks, so it is done only where the text is needed.
            let span = || &self.text[start..end];
            match pattern.meaning {
                Meaning::Marker => self.cut(start, end, Suspicion::SpoofedMarker),
                Meaning::MarkerWords => {
                    spelling::joins_words(span()) && self.cut(start, end, Suspicion::SpoofedMarker)
                }
                Meaning::Token(how) => {
                    spelling::is_spelled(span(), how)
                        && self.cut(start, end, Suspicion::ControlToken)
                }
                Meaning::NumberedToken => {
                    // What is left of the token is read on, but is no part of any pattern.
                    spelling::end_of_numbered(self.text, start, end)
                        .is_some_and(|end| self.cut(start, end, Suspicion::ControlToken))
                }
                Meaning::OpeningBar => {
                    self.bar = Some((start, end, self.counted));
                    false
                }
                Meaning::ClosingBar => self.close_bar(start, end),
                _ => {
                    self.note(pattern, start, end);
                    false
                }
            }
        })
    }

    fn close_bar(&mut self, start: usize, end: usize) -> bool {
        let may_close = self.may_close_bar();
        let Some((opened, name_start, _)) = self.bar.take() else { return false };
        let name = self.text.get(name_start..start).filter(|_| may_close);
        name.is_some_and(spelling::is_token_name) && self.cut(opened, end, Suspicion::ControlToken)
    }

    /// Notes a cue or a suspicious phrase, if the surroundings make it one.
    fn note(&mut self, pattern: &Pattern, start: usize, end: usize) {
        let recent = |cue: Option<Cue>| {
            cue.is_none_or(|cue| self.cues[cue as usize].is_some_and(|at| start < at + CUE_REACH))
        };
        // Most words that need another before them lack it, and this is the cheaper look.
        if let Meaning::Cue(_, after) | Meaning::Phrase(_, after) = pattern.meaning
            && !recent(after)
        {
            return;
        }
        if !spelling::stands_alone(self.text, start, end, pattern.ends_word) {
            return;
        }
        let suspicion = match pattern.meaning {
            Meaning::Cue(cue, _) => {
                self.cues[cue as usize] = Some(end);
                self.look_until = self.look_until.max(end + CUE_REACH);
                None
            }
            Meaning::Phrase(kind, _) => Some(kind),
            Meaning::LineStart(kind) => spelling::begins_line(self.text, start).then_some(kind),
            Meaning::Hyphenated(kind) => self.text[start..end].contains('-').then_some(kind),
            Meaning::ImageAddress => {
                let is_leak =
                    recent(Some(Cue::Image)) && spelling::address_has_query(&self.text[end..]);
                self.cues[Cue::Image as usize] = None;
                is_leak.then_some(Suspicion::ImageLeak)
            }
            _ => None,
        };
        if let Some(kind) = suspicion {
            self.findings.note(kind, start);
        }
    }

    fn cut(&mut self, start: usize, end: usize, kind: Suspicion) -> bool {
        let instead = if kind == Suspicion::SpoofedMarker { REMOVED_MARKER } else { REMOVED_TOKEN };
        // A row of tokens leaves one note, lest the text grow.
        if self.last_cut != Some((start, instead)) {
            self.cleaned.push_str(&self.text[self.copied..start]);
            self.cleaned.push_str(instead);
        }
        self.copied = end;
        self.last_cut = Some((end, instead));
        self.bar = None;
        self.findings.note(kind, start);
        true
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
