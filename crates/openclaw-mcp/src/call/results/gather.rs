//! Splits a response into its text, its images and audio, and its links.

use std::borrow::Cow;
use std::ops::Range;

use openclaw_content::{Untrusted, clean_line};
use openclaw_tools::{Blob, Content, MediaKind, ResourceLink, check_media};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::parts::{
    Audience, Bounded, ContentPart, PromptMessage, PromptResult, RawToolResult, ReadResult,
};
use super::repeats::Repeats;
use super::structured::ShownContent;
use super::text::{RawString, without_needless_escapes};
use super::unshown;
use openclaw_mcp_client::wire::json::Json;

/// The maximum number of images and audio clips; further ones are only described.
const MAX_MEDIA: usize = 20;
/// The maximum length of a name, type or URI in a description.
const MAX_SHOWN: usize = 300;

/// A piece of the text for the model. Even our descriptions contain untrusted names.
enum Piece<'a> {
    /// A string in the raw JSON.
    Theirs(RawString<'a>),
    /// A description of a part.
    Described(String),
    /// A placeholder for a part that is not shown, and that programs can get separately.
    Placeholder(String),
    /// JSON.
    Json(Cow<'a, str>),
    /// A piece of a part for the model only.
    ForModel(Box<Self>),
}

/// The content of a response.
pub(super) struct GatheredContent<'a> {
    pieces: Vec<Piece<'a>>,
    /// Whether to keep what a model does not see.
    everything: bool,
    /// The parts, if there is structured content to compare them with.
    parts: Option<Vec<Option<ContentPart<'a>>>>,
    rest: Rest,
}

/// The content of a response besides its text.
#[derive(Default)]
pub(super) struct Rest {
    pub(super) media: Vec<Content>,
    /// The texts of parts for the user only, and their images and audio.
    pub(super) user_texts: Vec<String>,
    pub(super) user_media: Vec<Content>,
    pub(super) links: Vec<ResourceLink>,
    pub(super) structured: Option<Box<RawValue>>,
    pub(super) blobs: Vec<Blob>,
    /// The number of parts that were not read.
    pub(super) more: usize,
    pub(super) is_error: bool,
}

/// The content of a response, with its text joined.
pub(super) struct ReadAnswer<'a> {
    pub(super) stretches: Vec<Stretch<'a>>,
    pub(super) rest: Rest,
}

/// A run of consecutive pieces, joined.
pub(super) struct Stretch<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) kind: StretchKind,
}

/// What a stretch stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StretchKind {
    /// Text for everyone.
    Text,
    /// A part that is not shown.
    Placeholder,
    /// Text for the model only.
    ForModel,
}

impl<'a> ReadAnswer<'a> {
    /// A response with a single text.
    pub(super) fn of_text(text: String, rest: Rest) -> ReadAnswer<'static> {
        let stretch = Stretch { text: Cow::Owned(text), kind: StretchKind::Text };
        ReadAnswer { stretches: vec![stretch], rest }
    }

    /// The range of the text within the raw JSON, if it is one piece and at least half of it.
    pub(super) fn only_part_of(&self, json: &str) -> Option<Range<usize>> {
        let [Stretch { text: Cow::Borrowed(text), kind: StretchKind::Text }] = *self.stretches
        else {
            return None;
        };
        super::most_of(json, text)
    }

    /// Detaches the response from the raw JSON, if it borrows nothing from it.
    #[allow(clippy::result_large_err, reason = "it is handed back as it was")]
    pub(super) fn detached(self) -> Result<ReadAnswer<'static>, Self> {
        if self.stretches.iter().any(|stretch| matches!(stretch.text, Cow::Borrowed(_))) {
            return Err(self);
        }
        let owned = self
            .stretches
            .into_iter()
            .map(|Stretch { text, kind }| Stretch { text: Cow::Owned(text.into_owned()), kind });
        Ok(ReadAnswer { stretches: owned.collect(), rest: self.rest })
    }
}

impl<'a> GatheredContent<'a> {
    fn new(everything: bool) -> Self {
        Self { pieces: Vec::new(), everything, parts: None, rest: Rest::default() }
    }

    /// Reads the result of a `tools/call`; `None` if it is invalid.
    pub(super) fn of_call(raw: &'a Json, everything: bool) -> Option<Self> {
        let mut gathered = Self::new(everything);
        let (structured, is_error) = match parse::<RawToolResult<'a, ContentPart<'a>>>(raw.get()) {
            Some(result) => {
                gathered.parts = result.structured.map(|_| Vec::new());
                gathered.parts(result.content.unwrap_or_default(), Some);
                (result.structured, result.is_error)
            }
            // At least one part is not an object: read them one by one.
            None => {
                let result = parse::<RawToolResult<'a, &'a RawValue>>(raw.get())?;
                gathered.parts = result.structured.map(|_| Vec::new());
                gathered.parts(result.content.unwrap_or_default(), ContentPart::read);
                (result.structured, result.is_error)
            }
        };
        gathered.rest.is_error = is_error.is_some_and(|flag| flag.get() == "true");
        if let Some(structured) = structured {
            gathered.rest.structured = everything.then(|| structured.to_owned());
            gathered.structured(structured);
        }
        Some(gathered)
    }

    /// Reads the result of a `resources/read`; `None` if it is invalid.
    pub(super) fn of_resource(raw: &'a Json, everything: bool) -> Option<Self> {
        let result: ReadResult<'a> = parse(raw.get())?;
        let mut gathered = Self::new(everything);
        let is_only_one = result.contents.items.len() == 1;
        gathered.bounded(result.contents, |gathered, raw| match ContentPart::read(raw) {
            // The label already names the only resource.
            Some(part) => gathered.resource(&part, !is_only_one),
            None => gathered.unreadable(),
        });
        Some(gathered)
    }

    /// Reads the result of a `prompts/get`; `None` if it is invalid.
    pub(super) fn of_prompt(raw: &'a Json, everything: bool) -> Option<Self> {
        let result: PromptResult<'a> = parse(raw.get())?;
        let mut gathered = Self::new(everything);
        if let Some(description) = result.description.and_then(RawString::parse) {
            gathered.describe(format!("[description: {}]", shown(description)));
        }
        gathered.bounded(result.messages, |gathered, raw| {
            let Some(message) = parse::<PromptMessage<'a>>(raw.get()) else {
                return gathered.unreadable();
            };
            let role = message.role.and_then(RawString::parse).map(shown);
            gathered.describe(format!("[message from {}]", role.as_deref().unwrap_or("unknown")));
            // A single part, or since 2026 a list of parts.
            let content = message.content.map(RawValue::get).unwrap_or_default();
            match (message.content, serde_json::from_str::<Bounded<&'a RawValue>>(content)) {
                (_, Ok(list)) => gathered.parts(list, ContentPart::read),
                (Some(one), Err(_)) => gathered.part(ContentPart::read(one)),
                (None, Err(_)) => gathered.unreadable(),
            }
        });
        Some(gathered)
    }

    fn parts<T>(&mut self, parts: Bounded<T>, read: impl Fn(T) -> Option<ContentPart<'a>>) {
        self.bounded(parts, |gathered, part| gathered.part(read(part)));
    }

    fn bounded<T>(&mut self, list: Bounded<T>, mut take: impl FnMut(&mut Self, T)) {
        self.rest.more += list.more;
        for item in list.items {
            take(self, item);
        }
    }

    fn part(&mut self, part: Option<ContentPart<'a>>) {
        match &part {
            Some(part) => match part.audience() {
                Audience::Everyone => self.readable(part),
                Audience::User => self.for_user(part),
                Audience::Model => self.for_model(part),
            },
            None => self.unreadable(),
        }
        if let Some(parts) = &mut self.parts {
            parts.push(part);
        }
    }

    fn readable(&mut self, part: &ContentPart<'a>) {
        let kind = part.kind().map(RawString::decode);
        match kind.as_deref() {
            Some("text") => match part.text() {
                Some(text) => self.pieces.push(Piece::Theirs(text)),
                None => self.unreadable(),
            },
            Some("image") => self.media(MediaKind::Image, part.mime_type(), part.data()),
            Some("audio") => self.media(MediaKind::Audio, part.mime_type(), part.data()),
            Some("resource_link") => self.link(part),
            Some("resource") => match part.resource() {
                Some(resource) => self.resource(&resource, true),
                None => self.unreadable(),
            },
            Some(other) => {
                let other = clean_line(Untrusted::new(other), MAX_SHOWN);
                self.describe(format!("[a part of unknown type \"{other}\", not shown]"));
            }
            None => self.unreadable(),
        }
    }

    /// Reads a part that the model must not see.
    fn for_user(&mut self, part: &ContentPart<'a>) {
        let pieces = self.pieces.len();
        let media = self.rest.media.len();
        self.readable(part);
        let pieces = self.pieces.split_off(pieces);
        if !pieces.is_empty() {
            self.rest.user_texts.push(join(&pieces));
        }
        let media = self.rest.media.split_off(media);
        self.rest.user_media.extend(media);
    }

    /// Reads a part that is not shown to users.
    fn for_model(&mut self, part: &ContentPart<'a>) {
        let first = self.pieces.len();
        self.readable(part);
        let pieces = self.pieces.split_off(first);
        self.pieces.extend(pieces.into_iter().map(|piece| Piece::ForModel(Box::new(piece))));
    }

    fn unreadable(&mut self) {
        self.describe("[a part that cannot be parsed]".to_owned());
    }

    fn describe(&mut self, words: String) {
        self.pieces.push(Piece::Described(words));
    }

    fn stand_in(&mut self, words: String) {
        self.pieces.push(Piece::Placeholder(words));
    }

    fn media(
        &mut self,
        kind: MediaKind,
        mime_type: Option<RawString<'a>>,
        data: Option<RawString<'a>>,
    ) {
        let declared = mime_type.map(RawString::decode).unwrap_or_default();
        let decoded = data.map(RawString::decode).unwrap_or_default();
        let checked = match self.rest.media.len() + self.rest.user_media.len() {
            ..MAX_MEDIA => check_media(kind, &declared, &decoded, kind.max_bytes())
                .map_err(|why| why.to_string()),
            _ => Err("too many".to_owned()),
        };
        match checked {
            Ok(mime_type) => {
                let mime_type = mime_type.to_owned();
                let data = decoded.into_owned();
                self.rest.media.push(match kind {
                    MediaKind::Image => Content::Image { mime_type, data },
                    MediaKind::Audio => Content::Audio { mime_type, data },
                });
            }
            Err(why) => {
                let declared = clean_line(Untrusted::new(&declared), MAX_SHOWN);
                self.stand_in(unshown::media(kind, &declared, decoded.len(), &why));
                if data.is_some() {
                    self.keep(None, declared, decoded);
                }
            }
        }
    }

    /// Keeps data that is not shown to a model, if requested.
    fn keep(&mut self, uri: Option<String>, mime_type: String, data: Cow<'a, str>) {
        if self.everything {
            self.rest.blobs.push(Blob { uri, mime_type, data: data.into_owned() });
        }
    }

    fn link(&mut self, part: &ContentPart<'a>) {
        let Some(uri) = part.uri().map(shown) else { return self.unreadable() };
        let name = part.title().or(part.name()).map(shown);
        let mime_type = part.mime_type().map(shown);
        let mut words = format!("[link to {uri}");
        for (before, more) in [
            (", named ", &name),
            (", of type ", &mime_type),
            (": ", &part.description().map(shown)),
        ] {
            if let Some(more) = more {
                words.push_str(before);
                words.push_str(more);
            }
        }
        words.push(']');
        self.describe(words);
        self.rest.links.push(ResourceLink { uri, name, mime_type });
    }

    fn resource(&mut self, part: &ContentPart<'a>, is_named: bool) {
        let uri = part.uri().map(shown).unwrap_or_default();
        if let Some(text) = part.text() {
            if is_named {
                self.describe(format!("[resource {uri}]"));
            }
            return self.pieces.push(Piece::Theirs(text));
        }
        let Some(blob) = part.blob() else { return self.unreadable() };
        let mime_type = part.mime_type().map(shown).unwrap_or_default();
        if let Some(kind) = MediaKind::of(&mime_type) {
            return self.media(kind, part.mime_type(), Some(blob));
        }
        let data = blob.decode();
        self.stand_in(unshown::file(&uri, &mime_type, data.len()));
        self.keep(Some(uri), mime_type, data);
    }

    /// Shows structured content unless the parts contain the same. Binary data of a part is not
    /// repeated.
    fn structured(&mut self, structured: &'a RawValue) {
        let texts: Vec<RawString<'a>> = self.pieces.iter().filter_map(Piece::token).collect();
        let parts = self.parts.take().unwrap_or_default();
        let repeats = Repeats::find(&parts);
        let short = repeats.taken_out(structured.get());
        let said = ShownContent { texts: &texts, parts: &parts, repeats: &repeats };
        if said.covers(structured.get(), &short) {
            return;
        }
        if !self.pieces.is_empty() {
            self.describe("[structured content]".to_owned());
        }
        self.pieces.push(Piece::Json(match short {
            Cow::Borrowed(json) => without_needless_escapes(json),
            Cow::Owned(json) => {
                let plain = match without_needless_escapes(&json) {
                    Cow::Owned(plain) => Some(plain),
                    Cow::Borrowed(_) => None,
                };
                Cow::Owned(plain.unwrap_or(json))
            }
        }));
    }

    /// Joins the text. It is borrowed if it is a single piece without escapes.
    pub(super) fn into_answer(mut self) -> ReadAnswer<'a> {
        let stretches = match self.pieces.as_mut_slice() {
            [] => Vec::new(),
            [only] => vec![Stretch { kind: only.kind(), text: only.take() }],
            pieces => {
                let is_one_run = |a: &Piece<'_>, b: &Piece<'_>| {
                    a.kind() == b.kind() && a.kind() != StretchKind::Placeholder
                };
                let runs = pieces.chunk_by_mut(is_one_run);
                let stretch = |run: &mut [Piece<'a>]| Stretch {
                    kind: run.first().map_or(StretchKind::Text, Piece::kind),
                    text: match run {
                        [only] => only.take(),
                        several => Cow::Owned(join(several)),
                    },
                };
                runs.map(stretch).collect()
            }
        };
        ReadAnswer { stretches, rest: self.rest }
    }
}

impl<'a> Piece<'a> {
    /// Takes the text, borrowed if possible.
    fn take(&mut self) -> Cow<'a, str> {
        match self {
            Self::Theirs(token) => token.decode(),
            Self::Described(words) | Self::Placeholder(words) => Cow::Owned(std::mem::take(words)),
            Self::Json(json) => std::mem::take(json),
            Self::ForModel(piece) => piece.take(),
        }
    }

    /// The string in the raw JSON, if it is one.
    fn token(&self) -> Option<RawString<'a>> {
        match self {
            Self::Theirs(token) => Some(*token),
            Self::Described(_) | Self::Placeholder(_) | Self::Json(_) => None,
            Self::ForModel(piece) => piece.token(),
        }
    }

    fn kind(&self) -> StretchKind {
        match self {
            Self::Theirs(_) | Self::Described(_) | Self::Json(_) => StretchKind::Text,
            Self::Placeholder(_) => StretchKind::Placeholder,
            Self::ForModel(_) => StretchKind::ForModel,
        }
    }

    /// The maximum length of its text, in bytes.
    fn max_len(&self) -> usize {
        match self {
            Self::Theirs(token) => token.max_len(),
            Self::Described(words) | Self::Placeholder(words) => words.len(),
            Self::Json(json) => json.len(),
            Self::ForModel(piece) => piece.max_len(),
        }
    }

    fn append_to(&self, text: &mut String) {
        match self {
            Self::Theirs(token) => token.decode_into(text),
            Self::Described(words) | Self::Placeholder(words) => text.push_str(words),
            Self::Json(json) => text.push_str(json),
            Self::ForModel(piece) => piece.append_to(text),
        }
    }
}

fn join(pieces: &[Piece<'_>]) -> String {
    let length = pieces.iter().map(|piece| piece.max_len() + 1);
    let mut text = String::with_capacity(length.sum());
    for (at, piece) in pieces.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        piece.append_to(&mut text);
    }
    text
}

fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Option<T> {
    // serde would read an array as the fields of a struct, in order.
    if !json.starts_with('{') {
        return None;
    }
    serde_json::from_str(json).ok()
}

/// Sanitizes a short text to one line.
fn shown(token: RawString<'_>) -> String {
    clean_line(Untrusted::new(&token.decode()), MAX_SHOWN)
}
