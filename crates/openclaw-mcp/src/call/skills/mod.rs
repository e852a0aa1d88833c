//! Verifies the files of skills against the entries that their server listed (SEP-2640).
//!
//! The server supplies both, so this proves no good intentions: it finds out that a skill is not
//! the one that was listed, and the content stays untrusted.

mod frontmatter;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use openclaw_tools::{ToolFailure, ToolOutcome};

use crate::call::results::{self, ResponseOrigin, named};
use crate::server::Server;
use openclaw_mcp_client::connection::Connection;
use openclaw_mcp_client::listing::{ListedSkill, SkillFiles};
use openclaw_mcp_client::wire::TimeLimits;
use openclaw_mcp_client::wire::json::Json;

/// Why a file of a skill must not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Mismatch {
    #[error("the skill does not list this file")]
    Unlisted,
    #[error("it is not a single text or blob")]
    Form,
    #[error("its size differs from the listed one")]
    Size,
    #[error("its digest differs from the listed one")]
    Digest,
    #[error("its front matter differs from the listed one")]
    FrontMatter,
}

/// Returns the skill that a URI belongs to. One that the server does not list is requested by the URI of
/// its `SKILL.md`.
pub(super) async fn skill_of(
    server: &Server,
    connection: &Connection,
    uri: &str,
    limits: TimeLimits,
) -> Option<Arc<ListedSkill>> {
    if let Some(skill) = server.cache().inventory().skill_of(uri) {
        return Some(Arc::clone(skill));
    }
    if !connection.about().offers.skills || !uri.ends_with("/SKILL.md") {
        return None;
    }
    // If the connection fails, the next request fails, too.
    let skill = connection.skill(uri, limits).await.ok().flatten()?;
    let skill = Arc::new(skill);
    server.cache().add_skill(Arc::clone(&skill));
    Some(skill)
}

/// Verifies a file, and returns the outcome if it must not be used.
pub(super) fn check(
    skill: &ListedSkill,
    uri: &str,
    result: &Json,
    server: &str,
) -> Result<(), ToolOutcome> {
    let Err(mismatch) = verify(skill, uri, result.get()) else { return Ok(()) };
    tracing::warn!(%server, skill = skill.name(), %mismatch, "refused a file of a skill");
    let words = format!(
        "A file of the skill `{}` of {} was refused: {mismatch}. Its skills are listed again; retry \
         once, and report it to the user if it fails again.",
        skill.name(),
        named(server)
    );
    let origin = ResponseOrigin { server, tool: uri };
    Err(results::failure(ToolFailure::InvalidResponse, words, Some(origin)))
}

#[derive(Deserialize)]
struct ReadResult {
    contents: Vec<Content>,
}

#[derive(Deserialize)]
struct Content {
    text: Option<String>,
    blob: Option<String>,
}

/// Verifies the result of a `resources/read`.
fn verify(skill: &ListedSkill, uri: &str, result: &str) -> Result<(), Mismatch> {
    let listed = match &skill.resources {
        SkillFiles::Listed(files) => {
            let listed = files.iter().find(|file| file.uri == uri);
            Some(listed.ok_or(Mismatch::Unlisted)?)
        }
        SkillFiles::Dynamic(_) => None,
    };
    let bytes = bytes(result).ok_or(Mismatch::Form)?;
    if let Some(listed) = listed {
        if bytes.len() as u64 != listed.size {
            return Err(Mismatch::Size);
        }
        let digest = HEXLOWER.encode(&Sha256::digest(&bytes));
        if listed.digest.strip_prefix("sha256:") != Some(&digest) {
            return Err(Mismatch::Digest);
        }
    }
    let is_same = || frontmatter::is_same(&String::from_utf8_lossy(&bytes), &skill.frontmatter);
    if uri == skill.uri && !is_same() {
        return Err(Mismatch::FrontMatter);
    }
    Ok(())
}

fn bytes(result: &str) -> Option<Vec<u8>> {
    let ReadResult { contents } = serde_json::from_str(result).ok()?;
    match <[Content; 1]>::try_from(contents).ok()? {
        [Content { text: Some(text), blob: None }] => Some(text.into_bytes()),
        [Content { text: None, blob: Some(blob) }] => STANDARD.decode(blob).ok(),
        _ => None,
    }
}
