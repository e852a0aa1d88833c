//! Scans a text in one pass: cuts out spoofed markers and control tokens, and records suspicious
//! content.
//!
//! The prefilter selects stretches, the automaton reads them. The automaton never steps back, and
//! leaves a stretch only in its root state, so each character is read at most once, and no match that
//! straddles two stretches is lost.

use std::ops::Range;

use crate::automaton::{AUTOMATON, Automaton, Pattern, ROOT, StateOffset};
use crate::finding::{Findings, Suspicion};
use crate::fold::{self, CLASSES, Class, HIDDEN, SKIP};
use crate::patterns::{Cue, Meaning};
use crate::prefilter::{NEAR, Prefilter};
use crate::spelling;

/// The replacement of a marker. If the marker were just removed, the text around it could form
/// another one (`<|im_<|im_start|>start|>`). No pattern begins or ends inside this text, so no new
/// match can arise, and the model sees that something was removed.
pub(crate) const REMOVED_MARKER: &str = "[removed marker]";
/// The replacement of a control token.
pub(crate) const REMOVED_TOKEN: &str = "[removed token]";

/// The maximum distance between a cue and the rest of the phrase, in bytes.
const CUE_REACH: usize = 96;

/// More than the number of significant characters of the longest pattern; a power of two.
const REMEMBERED: usize = 64;

/// How far a stretch is extended at most, in bytes, where stretches follow closely: running the
/// prefilter for each of them would cost more.
const LONGEST_STAY: usize = 1024;

/// The cost of a scan, for the test that it is linear.
#[cfg(test)]
#[derive(Debug, Default)]
struct Effort {
    /// Characters that the automaton read.
    steps: usize,
    /// Stretches that the prefilter found.
    stretches: usize,
    /// Bytes that the prefilter searched.
    searched: usize,
}

/// The result of a scan: the text up to `copied`, sanitized, and the findings.
pub(crate) struct Scan<'t> {
    text: &'t str,
    /// The offsets of the last significant characters, as a ring buffer.
    starts: [usize; REMEMBERED],
    /// The number of significant characters read.
    counted: usize,
    cues: [Option<usize>; Cue::COUNT],
    /// The last `<|`: its start, its end, and the value of `counted` there.
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
    /// Scans the text; the sanitized text is appended to `cleaned` up to the last cut.
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
        scan.scan_marked(Prefilter::new(text.as_bytes()));
        scan
    }

    /// Whether anything was cut.
    pub(crate) fn has_cut(&self) -> bool {
        self.last_cut.is_some()
    }

    /// Returns the given string with the whole sanitized text appended, and the findings.
    pub(crate) fn finish(mut self) -> (String, Findings) {
        self.cleaned.push_str(&self.text[self.copied..]);
        (self.cleaned, self.findings)
    }

    /// Returns the findings only.
    pub(crate) fn into_findings(self) -> Findings {
        self.findings
    }

    fn scan_marked(&mut self, mut prefilter: Prefilter<'_>) {
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

    /// Reads from `start` at least to `until`, and on while a match may be in progress; returns the
    /// end.
    fn look(&mut self, start: usize, until: usize) -> usize {
        let mut at = self.read(start, until);
        // The prefilter does not search for the end of a control token.
        while at < self.text.len() && self.may_close_bar() {
            at = self.read(at, at + REMEMBERED);
        }
        at
    }

    fn may_close_bar(&self) -> bool {
        self.bar.is_some_and(|(_, _, counted)| self.counted - counted < REMEMBERED)
    }

    /// Reads from `start` at least to `until`, and on until the automaton is in its root state.
    fn read(&mut self, start: usize, until: usize) -> usize {
        let automaton = &AUTOMATON;
        let steps = automaton.steps();
        let text = self.text.as_bytes();
        let (mut at, mut state, mut counted) = (start, ROOT, self.counted);
        self.look_until = until;
        // A local copy stays in a register: only a match changes the field.
        let mut look_until = until;
        while at < text.len() && (at < look_until || state != ROOT) {
            #[cfg(test)]
            {
                self.effort.steps += 1;
            }
            let start = at;
            let mut class = fold::class_of_byte(text[at]);
            // A fast path for ASCII, where the width need not be computed.
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
            // A skipped character does not change the state, and must not report a match again.
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

    /// Takes a step for a class that the automaton does not know: a pair, or a hidden character.
    #[cold]
    fn step_specially(
        &mut self,
        automaton: &Automaton,
        state: StateOffset,
        class: Class,
        place: Range<usize>,
    ) -> StateOffset {
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

    /// Handles the patterns that end at `end`; returns whether something was cut.
    #[cold]
    #[inline(never)]
    fn matched(&mut self, patterns: &[Pattern], end: usize) -> bool {
        patterns.iter().any(|pattern| {
            let start = self.starts[self.counted.wrapping_sub(pattern.length) % REMEMBERED];
            // Slicing costs bounds checks, so it is done only where the text is needed.
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
                Meaning::NumberedToken(how) => {
                    // The rest of the token is still read, but is not part of any pattern.
                    spelling::end_of_numbered(self.text, start, end, how)
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

    /// Records a cue or a suspicious phrase, if the context makes it one.
    fn note(&mut self, pattern: &Pattern, start: usize, end: usize) {
        let recent = |cue: Option<Cue>| {
            cue.is_none_or(|cue| self.cues[cue as usize].is_some_and(|at| start < at + CUE_REACH))
        };
        // Checked first because it is cheap, and most words that need a cue have none.
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
        // A row of tokens leaves one note, so that the text does not grow.
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
