//! Where the key of a provider is kept: in the keychain or, without one, where the user wants it.

use std::path::Path;

use openclaw_config::Paths;
use openclaw_secrets::{SecretRef, SecretString};

use super::provider::ChosenProvider;
use crate::edge::Edge;
use crate::error::CommandError;
use crate::output::Output;
use crate::prompt;
use openclaw_terminal::style::{FAINT, STRONG};

/// How often a wrong answer is asked for again.
const MAX_TRIES: usize = 5;

/// Where a key is kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyStorage {
    /// The provider needs no key.
    None,
    /// In the keychain, with this reference.
    #[cfg_attr(not(feature = "keychain"), expect(dead_code, reason = "there is no keychain"))]
    Keychain(String),
    /// In a file, with this reference.
    File(String),
    /// In this variable, which the user sets.
    Variable(&'static str),
}

impl KeyStorage {
    /// What the configuration has as the key.
    pub(super) fn reference(&self) -> Option<&str> {
        match self {
            Self::Keychain(reference) | Self::File(reference) => Some(reference),
            Self::None | Self::Variable(_) => None,
        }
    }

    pub(super) fn words(&self) -> String {
        match self {
            Self::None => "no key is needed".to_owned(),
            Self::Keychain(_) => "the key is in the keychain".to_owned(),
            Self::File(reference) => format!("the key is in {reference}"),
            Self::Variable(variable) => format!("the key is in ${variable}"),
        }
    }
}

/// Stores the key; `None` if the user does not want that.
pub(super) fn store_key(
    provider: &ChosenProvider,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> Result<Option<KeyStorage>, CommandError> {
    let Some(key) = provider.key() else { return Ok(Some(KeyStorage::None)) };
    let name = format!("{}-api-key", provider.id());
    let why = match in_keychain(&name, key, edge) {
        Ok(place) => return Ok(Some(place)),
        Err(why) => why,
    };
    output.aside(&format!("Cannot store the key in the keychain: {why}. Where to store it?"));
    let file = paths.state.join("secrets").join(&name);
    output.aside(&format!(
        "  {STRONG}f{STRONG:#}  in a file that only you can read {FAINT}({}){FAINT:#}",
        file.display()
    ));
    let variable = provider.variable();
    if let Some(variable) = variable {
        output.aside(&format!("  {STRONG}v{STRONG:#}  in ${variable}, which you set yourself"));
    }
    output.aside(&format!("  {STRONG}Enter{STRONG:#}  do not store it, and choose again"));
    for _ in 0..MAX_TRIES {
        match (prompt::line("Store the key: ")?.to_ascii_lowercase().as_str(), variable) {
            ("", _) => return Ok(None),
            ("f", _) => return in_file(&file, key, paths).map(Some),
            ("v", Some(variable)) => return Ok(Some(KeyStorage::Variable(variable))),
            _ => output.aside("Type a letter of this list, or press Enter."),
        }
    }
    Ok(None)
}

/// Stores the key in the keychain, or returns why that is not possible.
#[cfg(feature = "keychain")]
fn in_keychain(name: &str, key: &SecretString, edge: &Edge) -> Result<KeyStorage, String> {
    if !edge.key_options().use_keychain {
        return Err("it is turned off (OPENCLAW_KEYCHAIN)".to_owned());
    }
    openclaw_secrets::keychain::set(name, key).map_err(|error| error.to_string())?;
    Ok(KeyStorage::Keychain(format!("secret://keychain/{name}")))
}

/// Explains that this build has no keychain.
#[cfg(not(feature = "keychain"))]
fn in_keychain(_: &str, _: &SecretString, _: &Edge) -> Result<KeyStorage, String> {
    Err("this build has no keychain support".to_owned())
}

fn in_file(file: &Path, key: &SecretString, paths: &Paths) -> Result<KeyStorage, CommandError> {
    let failed = |cause: String| CommandError::failed("cannot store the key").cause(cause);
    // A path without the folder of the configuration may be moved with it.
    let beside = paths.config.parent().and_then(|folder| file.strip_prefix(folder).ok());
    let path = beside.unwrap_or(file).to_str().ok_or_else(|| failed("not UTF-8".to_owned()))?;
    let reference = format!("secret://file/{path}");
    reference.parse::<SecretRef>().map_err(|error| failed(error.to_string()))?;
    let folder = file.parent().unwrap_or(&paths.state);
    openclaw_files::make_folder(folder)
        .and_then(|()| openclaw_files::replace(file, key.expose().as_bytes()))
        .map_err(|error| failed(error.to_string()))?;
    Ok(KeyStorage::File(reference))
}
