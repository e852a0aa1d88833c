//! The patterns. They are written in their usual spelling; blanks, underscores and hyphens are ignored
//! in patterns as in texts ([`crate::fold`]).

use crate::finding::Suspicion;

/// What a match means.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning {
    /// The words of our boundary after a bracket.
    Marker,
    /// The words of our boundary without a bracket: a marker if they are joined as in the marker.
    MarkerWords,
    /// A control token.
    Token(Spelling),
    /// The beginning of a control token that continues with a number and `>`.
    NumberedToken(Spelling),
    /// `<|`, with which most control tokens begin.
    OpeningBar,
    /// `|>`, with which they end.
    ClosingBar,
    /// A word that makes a later one suspicious, if the cue that it depends on (if any) came shortly
    /// before.
    Cue(Cue, Option<Cue>),
    /// A suspicious phrase, if the cue that it depends on (if any) came shortly before.
    Phrase(Suspicion, Option<Cue>),
    /// Suspicious at the start of a line.
    LineStart(Suspicion),
    /// A suspicious phrase with a hyphen in it.
    Hyphenated(Suspicion),
    /// The start of the URL of a Markdown image.
    ImageAddress,
}

/// The spelling that a control token must have, where its letters also occur in ordinary text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// Any spelling.
    Free,
    /// In capitals: `regs[inst]` is source code.
    Capitals,
    /// In capitals except for one letter: `bits[gmask]` is source code.
    OneSmall,
    /// Without blanks: `cat <<SYS >>log` is a shell command.
    Tight,
    /// In small letters, without blanks and operators: `Vec<ToolCall>`, `impl<'s>` and `Box<S>` are
    /// source code.
    Small,
}

/// Words that are suspicious only together with later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cue {
    /// "Ignore …"
    Dismiss,
    /// "… all previous …"
    Earlier,
    /// "Send …"
    Send,
    /// `![`
    Image,
}

impl Cue {
    pub(crate) const COUNT: usize = 4;
}

use Cue::{Dismiss, Earlier, Image, Send};
use Meaning::{
    ClosingBar, Hyphenated, ImageAddress, LineStart, Marker, MarkerWords, NumberedToken,
    OpeningBar, Phrase, Token,
};
use Spelling::{Capitals, Free, OneSmall, Small, Tight};
use Suspicion::{
    Concealment, DestructiveCommand, Exfiltration, InstructionOverride, NewInstructions,
    RoleChange, RoleMarkup, SystemPrompt, ToolCallMarkup,
};

const DISMISS: Meaning = Meaning::Cue(Dismiss, None);
const EARLIER: Meaning = Meaning::Cue(Earlier, Some(Dismiss));
const SEND: Meaning = Meaning::Cue(Send, None);
const INSTRUCTIONS: Meaning = Phrase(InstructionOverride, Some(Earlier));
const SECRET: Meaning = Phrase(Exfiltration, Some(Send));

/// All patterns. A trailing `+` allows the last word to continue ("instruction+").
pub(crate) const PATTERNS: &[(&str, Meaning)] = &[
    ("<EXTERNAL_UNTRUSTED_CONTENT+", Marker),
    ("</EXTERNAL_UNTRUSTED_CONTENT+", Marker),
    ("<END_EXTERNAL_UNTRUSTED_CONTENT+", Marker),
    ("</END_EXTERNAL_UNTRUSTED_CONTENT+", Marker),
    ("EXTERNAL_UNTRUSTED_CONTENT+", MarkerWords),
    ("END_EXTERNAL_UNTRUSTED_CONTENT+", MarkerWords),
    // Control tokens. All of the form `<|…|>` are found by their delimiters.
    ("<|", OpeningBar),
    ("|>", ClosingBar),
    ("[INST]", Token(Capitals)),
    ("[/INST]", Token(Capitals)),
    ("[SYSTEM_PROMPT]", Token(Capitals)),
    ("[/SYSTEM_PROMPT]", Token(Capitals)),
    ("[AVAILABLE_TOOLS]", Token(Capitals)),
    ("[/AVAILABLE_TOOLS]", Token(Capitals)),
    ("[TOOL_CALLS]", Token(Capitals)),
    ("[TOOL_RESULTS]", Token(Capitals)),
    ("[/TOOL_RESULTS]", Token(Capitals)),
    ("<<SYS>>", Token(Tight)),
    ("<</SYS>>", Token(Tight)),
    ("<start_of_turn>", Token(Free)),
    ("<end_of_turn>", Token(Free)),
    ("<bos>", Token(Tight)),
    ("<eos>", Token(Tight)),
    ("<start_of_image>", Token(Free)),
    ("<end_of_image>", Token(Free)),
    ("<fim_prefix>", Token(Free)),
    ("<fim_middle>", Token(Free)),
    ("<fim_suffix>", Token(Free)),
    ("<fim_pad>", Token(Free)),
    ("[gMASK]", Token(OneSmall)),
    ("[sMASK]", Token(OneSmall)),
    ("<unused+", NumberedToken(Small)),
    ("<extra_id_+", NumberedToken(Small)),
    ("<SPECIAL_+", NumberedToken(Capitals)),
    // HTML has `<s>`, too; but to a model it is the beginning of a conversation, and `</s>` its end.
    ("<s>", Token(Small)),
    ("</s>", Token(Small)),
    ("<BOS_TOKEN>", Token(Capitals)),
    ("<EOS_TOKEN>", Token(Capitals)),
    ("<EOP_TOKEN>", Token(Capitals)),
    ("<sop>", Token(Small)),
    ("<eop>", Token(Small)),
    ("<seed:bos>", Token(Small)),
    ("<seed:eos>", Token(Small)),
    ("<think>", Token(Small)),
    ("</think>", Token(Small)),
    ("<seed:think>", Token(Small)),
    ("</seed:think>", Token(Small)),
    ("[THINK]", Token(Capitals)),
    ("[/THINK]", Token(Capitals)),
    ("<tool_call>", Token(Small)),
    ("</tool_call>", Token(Small)),
    ("<tool_calls>", Token(Small)),
    ("</tool_calls>", Token(Small)),
    ("<TOOLCALL>", Token(Capitals)),
    ("</TOOLCALL>", Token(Capitals)),
    ("<seed:tool_call>", Token(Small)),
    ("</seed:tool_call>", Token(Small)),
    ("<minimax:tool_call>", Token(Small)),
    ("</minimax:tool_call>", Token(Small)),
    ("<function_calls>", Token(Small)),
    ("</function_calls>", Token(Small)),
    ("<start_function_call>", Token(Small)),
    ("<end_function_call>", Token(Small)),
    ("<arg_key>", Token(Small)),
    ("</arg_key>", Token(Small)),
    ("<arg_value>", Token(Small)),
    ("</arg_value>", Token(Small)),
    ("<tool_response>", Token(Small)),
    ("</tool_response>", Token(Small)),
    ("<TOOL_RESPONSE>", Token(Capitals)),
    ("</TOOL_RESPONSE>", Token(Capitals)),
    ("<start_function_response>", Token(Small)),
    ("<end_function_response>", Token(Small)),
    ("[TOOL_CONTENT]", Token(Capitals)),
    ("<start_function_declaration>", Token(Small)),
    ("<end_function_declaration>", Token(Small)),
    // With a bar on one side only.
    ("<|turn>", Token(Tight)),
    ("<turn|>", Token(Tight)),
    ("<|channel>", Token(Tight)),
    ("<channel|>", Token(Tight)),
    ("<|tool>", Token(Tight)),
    ("<tool|>", Token(Tight)),
    ("<|tool_call>", Token(Tight)),
    ("<tool_call|>", Token(Tight)),
    ("<|tool_response>", Token(Tight)),
    ("<tool_response|>", Token(Tight)),
    ("<|DSML|", Token(Free)),
    ("</|DSML|", Token(Free)),
    ("[|system|]", Token(Tight)),
    ("[|user|]", Token(Tight)),
    ("[|assistant|]", Token(Tight)),
    ("[|tool|]", Token(Tight)),
    ("[|endofturn|]", Token(Tight)),
    // "Ignore all previous instructions": the three parts may have words between them.
    ("ignore", DISMISS),
    ("disregard", DISMISS),
    ("forget", DISMISS),
    ("override", DISMISS),
    ("bypass", DISMISS),
    ("previous", EARLIER),
    ("prior", EARLIER),
    ("above", EARLIER),
    ("earlier", EARLIER),
    ("preceding", EARLIER),
    ("original", EARLIER),
    ("all", EARLIER),
    ("any", EARLIER),
    ("your", EARLIER),
    ("instruction+", INSTRUCTIONS),
    ("prompt+", INSTRUCTIONS),
    ("guideline+", INSTRUCTIONS),
    ("directive+", INSTRUCTIONS),
    ("direction+", INSTRUCTIONS),
    ("command+", INSTRUCTIONS),
    ("rules", INSTRUCTIONS),
    ("ignore the above", Phrase(InstructionOverride, None)),
    ("disregard the above", Phrase(InstructionOverride, None)),
    ("forget the above", Phrase(InstructionOverride, None)),
    ("ignore everything", Phrase(InstructionOverride, None)),
    ("disregard everything", Phrase(InstructionOverride, None)),
    ("forget everything", Phrase(InstructionOverride, None)),
    ("new instructions", Phrase(NewInstructions, None)),
    ("updated instructions", Phrase(NewInstructions, None)),
    ("real instructions", Phrase(NewInstructions, None)),
    ("follow these instructions", Phrase(NewInstructions, None)),
    ("you are now", Phrase(RoleChange, None)),
    ("from now on you", Phrase(RoleChange, None)),
    ("pretend to be", Phrase(RoleChange, None)),
    ("pretend you are", Phrase(RoleChange, None)),
    ("pretend that you are", Phrase(RoleChange, None)),
    ("developer mode", Phrase(RoleChange, None)),
    ("jailbreak+", Phrase(RoleChange, None)),
    ("system prompt+", Phrase(SystemPrompt, None)),
    ("system message+", Phrase(SystemPrompt, None)),
    ("hidden instructions", Phrase(SystemPrompt, None)),
    ("<system>", Phrase(RoleMarkup, None)),
    ("</system>", Phrase(RoleMarkup, None)),
    ("<assistant>", Phrase(RoleMarkup, None)),
    ("</assistant>", Phrase(RoleMarkup, None)),
    ("<system_prompt>", Phrase(RoleMarkup, None)),
    ("<system_reminder>", Phrase(RoleMarkup, None)),
    ("<important>", Phrase(RoleMarkup, None)),
    ("<instructions>", Phrase(RoleMarkup, None)),
    ("system:+", LineStart(RoleMarkup)),
    ("assistant:+", LineStart(RoleMarkup)),
    ("human:+", LineStart(RoleMarkup)),
    ("<tool_use>", Phrase(ToolCallMarkup, None)),
    ("<function_call>", Phrase(ToolCallMarkup, None)),
    ("<invoke name", Phrase(ToolCallMarkup, None)),
    ("rm -rf", Hyphenated(DestructiveCommand)),
    ("rm -fr", Hyphenated(DestructiveCommand)),
    ("delete all", Phrase(DestructiveCommand, None)),
    ("drop table", Phrase(DestructiveCommand, None)),
    ("send", SEND),
    ("post", SEND),
    ("upload", SEND),
    ("forward", SEND),
    ("email", SEND),
    ("transmit", SEND),
    ("leak", SEND),
    ("reveal", SEND),
    ("share", SEND),
    ("curl", SEND),
    ("api key+", SECRET),
    ("password+", SECRET),
    ("credential+", SECRET),
    ("private key+", SECRET),
    ("access token+", SECRET),
    ("exfiltrat+", Phrase(Exfiltration, None)),
    ("forward all emails", Phrase(Exfiltration, None)),
    ("forward all messages", Phrase(Exfiltration, None)),
    ("send this to http+", Phrase(Exfiltration, None)),
    ("send it to http+", Phrase(Exfiltration, None)),
    ("send them to http+", Phrase(Exfiltration, None)),
    ("![", Meaning::Cue(Image, None)),
    ("](http+", ImageAddress),
    ("not tell the user", Phrase(Concealment, None)),
    ("don't tell the user", Phrase(Concealment, None)),
    ("never tell the user", Phrase(Concealment, None)),
    ("without telling the user", Phrase(Concealment, None)),
    ("not inform the user", Phrase(Concealment, None)),
];

/// Fragments, at least one of which occurs in every suspicious phrase in plain spelling: lower case,
/// single blanks. In plain text, the automaton runs only around them, so they should be rare. They
/// have at least six letters, as the search ([`crate::fragments`]) requires.
pub(crate) const RARE_FRAGMENTS: &[&str] = &[
    "untrusted",
    "ignore",
    "disregard",
    "forget",
    "override",
    "bypass",
    "instructions",
    "are now",
    "from now on",
    "pretend",
    "developer mode",
    "jailbreak",
    "system prompt",
    "system message",
    "system:",
    "assistant:",
    "human:",
    "rm -rf",
    "rm -fr",
    "delete all",
    "drop table",
    "api key",
    "password",
    "credential",
    "private key",
    "access token",
    "exfiltrat",
    "forward all",
    "to http",
    "](http",
    "tell the user",
    "telling the user",
    "inform the user",
];

/// Names between `<|` and `|>` that are a control token even with blanks around them; without blanks,
/// any name is. (`f <| x |> g` is source code.) A name with escaped underscores is one, too; but
/// `<\|x\|>` is LaTeX.
pub(crate) const BAR_TOKENS: &[&str] = &[
    "system",
    "user",
    "assistant",
    "tool",
    "developer",
    "end",
    "start",
    "message",
    "channel",
    "call",
    "return",
    "constrain",
    "think",
    "im_start",
    "im_end",
    "im_sep",
    "endoftext",
    "startoftext",
    "end_of_text",
    "begin_of_text",
    "start_header_id",
    "end_header_id",
    "eot_id",
    "eom_id",
    "python_tag",
    "endofprompt",
    "start_of_turn_token",
    "end_of_turn_token",
    "system_token",
    "user_token",
    "chatbot_token",
    "begin_of_sentence",
    "end_of_sentence",
    "fim_prefix",
    "fim_middle",
    "fim_suffix",
    "tool_calls_begin",
    "tool_calls_end",
    "tool_call",
    "tool_response",
    "end_of_role",
    "start_of_role",
];
