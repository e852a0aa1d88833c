//! What the scanner noticed in a text: the kinds of suspicious content, and how often each occurred.

use std::fmt;

/// A kind of suspicious content. Its name ([`Suspicion::name`]) is stable: logs and results carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Suspicion {
    /// Something that looks like the boundary around outside text. It was defused.
    SpoofedMarker,
    /// A control token of a chat template. It was removed.
    ControlToken,
    /// "Ignore all previous instructions", "disregard the above".
    InstructionOverride,
    /// "New instructions:", "follow these instructions".
    NewInstructions,
    /// "You are now", "pretend to be".
    RoleChange,
    /// Talk of the system prompt.
    SystemPrompt,
    /// `<system>` tags, or a line that begins with `system:`.
    RoleMarkup,
    /// Markup with which models call tools.
    ToolCallMarkup,
    /// "rm -rf", "delete all emails".
    DestructiveCommand,
    /// "Send the API key", "exfiltrate".
    Exfiltration,
    /// "Do not tell the user".
    Concealment,
    /// A Markdown image whose address carries a query, the usual way to leak by rendering.
    ImageLeak,
    /// Text in tag characters, which people do not see and models read.
    HiddenText,
}

impl Suspicion {
    /// All kinds, in the order of declaration.
    pub const ALL: [Self; 13] = [
        Self::SpoofedMarker,
        Self::ControlToken,
        Self::InstructionOverride,
        Self::NewInstructions,
        Self::RoleChange,
        Self::SystemPrompt,
        Self::RoleMarkup,
        Self::ToolCallMarkup,
        Self::DestructiveCommand,
        Self::Exfiltration,
        Self::Concealment,
        Self::ImageLeak,
        Self::HiddenText,
    ];

    /// The stable name, as in logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SpoofedMarker => "spoofed-marker",
            Self::ControlToken => "control-token",
            Self::InstructionOverride => "instruction-override",
            Self::NewInstructions => "new-instructions",
            Self::RoleChange => "role-change",
            Self::SystemPrompt => "system-prompt",
            Self::RoleMarkup => "role-markup",
            Self::ToolCallMarkup => "tool-call-markup",
            Self::DestructiveCommand => "destructive-command",
            Self::Exfiltration => "exfiltration",
            Self::Concealment => "concealment",
            Self::ImageLeak => "image-leak",
            Self::HiddenText => "hidden-text",
        }
    }
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One kind of suspicious content in one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: Suspicion,
    /// How often it occurs.
    pub count: usize,
    /// Where it first occurs: a byte offset into the text as it came.
    pub first: usize,
}

/// The findings of one text, at most one for each kind.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Findings {
    by_kind: [Option<(usize, usize)>; Suspicion::ALL.len()],
}

impl Findings {
    /// The findings, in the order of [`Suspicion::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = Finding> + '_ {
        Suspicion::ALL.into_iter().filter_map(|kind| self.get(kind))
    }

    /// The finding of this kind, if there is one.
    #[must_use]
    pub fn get(&self, kind: Suspicion) -> Option<Finding> {
        self.by_kind[kind as usize].map(|(count, first)| Finding { kind, count, first })
    }

    /// Whether nothing suspicious was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_kind.iter().all(Option::is_none)
    }

    /// How many markers and tokens were made harmless.
    #[must_use]
    pub fn defused(&self) -> usize {
        [Suspicion::SpoofedMarker, Suspicion::ControlToken]
            .into_iter()
            .filter_map(|kind| self.get(kind))
            .map(|finding| finding.count)
            .sum()
    }

    pub(crate) fn note(&mut self, kind: Suspicion, at: usize) {
        let (count, _) = self.by_kind[kind as usize].get_or_insert((0, at));
        *count += 1;
    }
}

impl fmt::Debug for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_name_and_place() {
        for (at, kind) in Suspicion::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
            assert_eq!(
                Suspicion::ALL.iter().filter(|other| other.name() == kind.name()).count(),
                1
            );
        }
    }

    #[test]
    fn a_finding_counts_and_remembers_the_first_place() {
        let mut findings = Findings::default();
        assert!(findings.is_empty());
        findings.note(Suspicion::RoleChange, 7);
        findings.note(Suspicion::RoleChange, 3);
        let expected = Finding { kind: Suspicion::RoleChange, count: 2, first: 7 };
        assert_eq!(findings.iter().collect::<Vec<_>>(), [expected]);
    }
}
