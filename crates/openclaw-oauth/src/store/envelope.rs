//! The encrypted form of a stored grant or login.
//!
//! The server's name and URL are readable, so that a grant can be listed and deleted without the
//! key. They are bound to the content as associated data: an edited envelope, or one of another
//! server, cannot be opened.

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use url::Url;
use zeroize::Zeroizing;

use super::key_file::Key;
use crate::grant::GrantKey;

const VERSION: u32 = 1;
const CIPHER: &str = "chacha20-poly1305";

/// What an envelope holds. A login is never taken for a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum EnvelopeKind {
    Grant,
    Login,
    Issuer,
}

impl EnvelopeKind {
    /// Returns how the name of its file ends.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Grant => ".json",
            Self::Login => ".login.json",
            Self::Issuer => ".issuer.json",
        }
    }
}

/// An envelope as it is stored. Unknown fields are ignored.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredEnvelope {
    version: u32,
    cipher: String,
    /// The id of the key.
    key: String,
    server: String,
    url: Url,
    nonce: String,
    data: String,
}

/// Why an envelope cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Damage {
    #[error("damaged, or not a file of tokens")]
    Form,
    #[error("written by a newer version of openclaw")]
    Newer,
    #[error("it belongs to another server or URL")]
    Foreign,
    #[error("damaged or edited")]
    Content,
}

/// Returns the file name, without extension, for a key.
pub(super) fn file_stem(owner: &GrantKey) -> String {
    let mut hash = Sha256::new();
    hash.update(&owner.server);
    hash.update([0]);
    hash.update(owner.url.as_str());
    HEXLOWER.encode(&hash.finalize()[..16])
}

/// Encrypts `content`. There is no newline at the end: so every truncation is detected.
pub(super) fn seal(
    kind: EnvelopeKind,
    owner: &GrantKey,
    key: &Key,
    content: &[u8],
) -> Result<Vec<u8>, Damage> {
    let mut nonce = [0; NONCE_LEN];
    getrandom::fill(&mut nonce).map_err(|_| Damage::Content)?;
    // Random nonces are safe for 2^32 writes with one key.
    // With room for the tag: growing would leave a copy of the plaintext behind.
    let mut data = Zeroizing::new(Vec::with_capacity(content.len() + CHACHA20_POLY1305.tag_len()));
    data.extend_from_slice(content);
    cipher(key)?
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(associated_data(kind, owner, key.id())),
            &mut *data,
        )
        .map_err(|_| Damage::Content)?;
    let envelope = StoredEnvelope {
        version: VERSION,
        cipher: CIPHER.to_owned(),
        key: key.id().to_owned(),
        server: owner.server.clone(),
        url: owner.url.clone(),
        nonce: BASE64.encode(nonce),
        data: BASE64.encode(&*data),
    };
    serde_json::to_vec_pretty(&envelope).map_err(|_| Damage::Form)
}

impl StoredEnvelope {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Damage> {
        #[derive(Deserialize)]
        struct Format {
            version: u32,
        }
        let format: Format = serde_json::from_slice(bytes).map_err(|_| Damage::Form)?;
        if format.version > VERSION {
            return Err(Damage::Newer);
        }
        let envelope: Self = serde_json::from_slice(bytes).map_err(|_| Damage::Form)?;
        if envelope.version != VERSION || envelope.cipher != CIPHER {
            return Err(Damage::Form);
        }
        Ok(envelope)
    }

    /// Returns the id of the key that it is encrypted with.
    pub(super) fn key_id(&self) -> &str {
        &self.key
    }

    /// Returns the key of the grant, not yet verified.
    pub(super) fn owner(&self) -> GrantKey {
        GrantKey { server: self.server.clone(), url: self.url.clone() }
    }

    /// Decrypts it.
    pub(super) fn open(
        &self,
        kind: EnvelopeKind,
        owner: &GrantKey,
        key: &Key,
    ) -> Result<Zeroizing<Vec<u8>>, Damage> {
        if self.owner() != *owner {
            return Err(Damage::Foreign);
        }
        let nonce = BASE64.decode(&self.nonce).map_err(|_| Damage::Form)?;
        let nonce = Nonce::try_assume_unique_for_key(&nonce).map_err(|_| Damage::Form)?;
        let mut data = Zeroizing::new(BASE64.decode(&self.data).map_err(|_| Damage::Form)?);
        let associated = Aad::from(associated_data(kind, owner, key.id()));
        let length = cipher(key)?
            .open_in_place(nonce, associated, &mut data)
            .map_err(|_| Damage::Content)?
            .len();
        data.truncate(length);
        Ok(data)
    }
}

fn cipher(key: &Key) -> Result<LessSafeKey, Damage> {
    let key = UnboundKey::new(&CHACHA20_POLY1305, key.bytes()).map_err(|_| Damage::Content)?;
    Ok(LessSafeKey::new(key))
}

/// JSON: two different owners never have the same text.
fn associated_data(kind: EnvelopeKind, owner: &GrantKey, key_id: &str) -> Vec<u8> {
    let all = (kind, VERSION, CIPHER, key_id, &owner.server, &owner.url);
    // Serializing strings cannot fail.
    serde_json::to_vec(&all).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(server: &str, url: &str) -> GrantKey {
        GrantKey::new(server, &url.parse().unwrap())
    }

    #[test]
    fn only_the_same_owner_kind_and_key_open_an_envelope() {
        let [key, other] = [Key::random().unwrap(), Key::random().unwrap()];
        let notes = owner("notes", "https://notes.example/mcp");
        let bytes = seal(EnvelopeKind::Grant, &notes, &key, b"content").unwrap();
        let envelope = StoredEnvelope::parse(&bytes).unwrap();
        assert_eq!(*envelope.open(EnvelopeKind::Grant, &notes, &key).unwrap(), b"content");
        let mail = owner("mail", "https://notes.example/mcp");
        assert_eq!(envelope.open(EnvelopeKind::Grant, &mail, &key).unwrap_err(), Damage::Foreign);
        assert_eq!(envelope.open(EnvelopeKind::Login, &notes, &key).unwrap_err(), Damage::Content);
        assert_eq!(
            envelope.open(EnvelopeKind::Grant, &notes, &other).unwrap_err(),
            Damage::Content
        );
    }

    #[test]
    fn a_renamed_owner_inside_an_envelope_is_detected() {
        let key = Key::random().unwrap();
        let notes = owner("notes", "https://notes.example/mcp");
        let bytes = seal(EnvelopeKind::Grant, &notes, &key, b"content").unwrap();
        let text = String::from_utf8(bytes).unwrap();
        for (from, to, name, url) in [
            ("\"notes\"", "\"mail\"", "mail", "https://notes.example/mcp"),
            ("notes.example", "evil.example", "notes", "https://evil.example/mcp"),
        ] {
            let envelope = StoredEnvelope::parse(text.replace(from, to).as_bytes()).unwrap();
            let opened = envelope.open(EnvelopeKind::Grant, &owner(name, url), &key);
            assert_eq!(opened.unwrap_err(), Damage::Content);
        }
    }

    #[test]
    fn an_envelope_shows_no_content_and_every_seal_differs() {
        let key = Key::random().unwrap();
        let notes = owner("notes", "https://notes.example/mcp");
        let [one, two] =
            [0, 1].map(|_| seal(EnvelopeKind::Grant, &notes, &key, b"content").unwrap());
        assert_ne!(one, two);
        let text = String::from_utf8(one).unwrap();
        assert!(!text.contains("content") && !text.contains(&BASE64.encode("content")));
        assert_eq!(text.as_bytes().last(), Some(&b'}'));
    }

    #[test]
    fn a_newer_format_is_named_as_such() {
        assert_eq!(StoredEnvelope::parse(b"{\"version\":2}").unwrap_err(), Damage::Newer);
        assert_eq!(StoredEnvelope::parse(b"{\"version\":1}").unwrap_err(), Damage::Form);
        assert_eq!(StoredEnvelope::parse(b"[]").unwrap_err(), Damage::Form);
    }

    #[test]
    fn the_file_name_depends_on_server_and_url() {
        let stem = file_stem(&owner("notes", "https://notes.example/mcp"));
        assert_eq!(stem.len(), 32);
        assert_ne!(stem, file_stem(&owner("notes", "https://notes.example/mcp2")));
        assert_ne!(stem, file_stem(&owner("note", "https://notes.example/mcp")));
    }
}
