//! `/model` and `/models`.

use openclaw_protocol::Method;

/// What to do with the model of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelCommand {
    /// Show it.
    Show,
    /// List those that can be chosen.
    List,
    /// Choose one; `None`: the agent's own.
    Set(Option<String>),
    /// Choose one for more than this session.
    OtherScope,
}

impl ModelCommand {
    /// Reads what follows `/model`.
    pub(super) fn read(rest: &str) -> Self {
        let (flags, words): (Vec<&str>, Vec<&str>) =
            rest.split_whitespace().partition(|word| word.starts_with('-'));
        let is_session = |flag: &&str| matches!(*flag, "-s" | "--session");
        match words.as_slice() {
            _ if !flags.iter().all(is_session) => Self::OtherScope,
            [] | ["status"] => Self::Show,
            ["list"] => Self::List,
            ["default"] => Self::Set(None),
            // A name has no spaces: this is rejected with the known names.
            _ => Self::Set(Some(words.join(" "))),
        }
    }

    /// The method that it stands for.
    pub(super) const fn method(&self) -> Method {
        match self {
            Self::Show => Method::SessionsDescribe,
            Self::List => Method::ModelsList,
            Self::Set(_) => Method::SessionsPatch,
            // It is only answered.
            Self::OtherScope => Method::CommandsList,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_shown_listed_or_chosen_for_the_session() {
        for (rest, expected) in [
            ("", ModelCommand::Show),
            ("status", ModelCommand::Show),
            ("list", ModelCommand::List),
            ("default", ModelCommand::Set(None)),
            ("a/b", ModelCommand::Set(Some("a/b".to_owned()))),
            ("a/b -s", ModelCommand::Set(Some("a/b".to_owned()))),
            ("-g a/b", ModelCommand::OtherScope),
        ] {
            assert_eq!(ModelCommand::read(rest), expected, "{rest}");
        }
    }
}
