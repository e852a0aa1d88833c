//! The profiles of `~/.aws/config` and `~/.aws/credentials`, and how to get credentials from one.
//!
//! Not parsed by the signing library, which supports neither roles nor `sso_session` in a profile
//! and strips quotes and backslashes from commands.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use reqsign_aws_v4::Credential;
use reqsign_core::{Error, Result};

use super::{failure, host};
use crate::providers::ProviderContext;

type Properties = BTreeMap<String, String>;

/// All profiles, and the selected one.
pub(super) struct Profiles {
    /// Keyed by `profile NAME` or `sso-session NAME`, as in `~/.aws/config`.
    sections: BTreeMap<String, Properties>,
    chosen: Option<String>,
}

/// How a profile gets its credentials.
#[derive(Debug)]
pub(super) struct CredentialPlan {
    pub(super) source: CredentialSource,
    /// The roles to assume with them, in order.
    pub(super) roles: Vec<AssumedRole>,
}

/// Where credentials come from.
#[derive(Debug)]
pub(super) enum CredentialSource {
    Keys(Credential),
    Environment,
    Container,
    Instance,
    Process(String),
    /// The name of the token file in `~/.aws/sso/cache` is derived from `cached_as`.
    Sso {
        account: String,
        role: String,
        region: String,
        cached_as: String,
    },
    WebIdentity {
        role: AssumedRole,
        token_file: PathBuf,
    },
}

/// A role, and how it is assumed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AssumedRole {
    pub(super) arn: String,
    pub(super) session: Option<String>,
    pub(super) external_id: Option<String>,
}

impl Profiles {
    /// Reads both files. A file that is missing or unreadable has no profiles.
    pub(super) async fn load(context: &ProviderContext) -> Self {
        let variable = |name| context.environment.get_set(name);
        let settings = &context.settings;
        let file = async |name, default: &str| {
            let home = settings.home.as_deref().unwrap_or(Path::new(""));
            let path = match variable(name) {
                Some(path) => match path.strip_prefix("~/") {
                    Some(rest) => home.join(rest),
                    None => path.into(),
                },
                None if settings.home.is_some() => home.join(".aws").join(default),
                None => return String::new(),
            };
            let content = host::read(&path).await.unwrap_or_else(|failure| {
                tracing::warn!(path = %path.display(), cause = failure.cause, "cannot read file");
                None
            });
            String::from_utf8_lossy(&content.unwrap_or_default()).into_owned()
        };
        let config = file("AWS_CONFIG_FILE", "config").await;
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials").await;
        let chosen = settings.aws.profile.clone().or_else(|| variable("AWS_PROFILE"));
        Self::new(&config, &credentials, chosen)
    }

    /// Parses both files. Properties in the credentials file win.
    pub(super) fn new(config: &str, credentials: &str, chosen: Option<String>) -> Self {
        let mut profiles = Self { sections: BTreeMap::new(), chosen };
        profiles.add(config, |section| match section {
            "default" => "profile default".to_owned(),
            other => other.split_whitespace().collect::<Vec<_>>().join(" "),
        });
        profiles.add(credentials, |section| format!("profile {section}"));
        profiles
    }

    fn add(&mut self, text: &str, name: impl Fn(&str) -> String) {
        let mut section = None;
        for line in text.lines() {
            // An indented line belongs to a nested setting; none of them is needed here.
            if line.starts_with([' ', '\t', '#', ';']) {
                continue;
            }
            if let Some((header, _)) = line.strip_prefix('[').and_then(|l| l.split_once(']')) {
                section = Some(self.sections.entry(name(header.trim())).or_default());
            } else if let (Some(properties), Some((key, value))) =
                (&mut section, line.split_once('='))
            {
                // A comment begins after white space, so that a value may contain `#` and `;`.
                let comment = [" #", " ;", "\t#", "\t;"].iter().filter_map(|c| value.find(c)).min();
                let value = value[..comment.unwrap_or(value.len())].trim();
                properties.insert(key.trim().to_ascii_lowercase(), value.to_owned());
            }
        }
    }

    fn chosen(&self) -> &str {
        self.chosen.as_deref().unwrap_or("default")
    }

    fn profile(&self, name: &str) -> Option<&Properties> {
        self.sections.get(&format!("profile {name}"))
    }

    /// Returns a property of the selected profile.
    pub(super) fn property(&self, name: &str) -> Option<&str> {
        get(self.profile(self.chosen())?, name)
    }

    /// Returns how the selected profile gets its credentials; `None` if it has none.
    pub(super) fn plan(&self) -> Result<Option<CredentialPlan>> {
        let mut name = self.chosen();
        let mut seen = Vec::new();
        let mut roles = Vec::new();
        loop {
            let Some(profile) = self.profile(name) else {
                let is_asked_for = self.chosen.is_some() || !seen.is_empty();
                let not_found = || bad(&format!("`{name}` not found"));
                return if is_asked_for { Err(not_found()) } else { Ok(None) };
            };
            if seen.contains(&name) {
                return Err(bad("`source_profile` is circular"));
            }
            seen.push(name);
            // In a `source_profile`, keys take precedence over its own role.
            let keys = if seen.len() > 1 { keys(profile)? } else { None };
            let role = role(profile).filter(|_| get(profile, TOKEN_FILE).is_none());
            let next = match (keys, role) {
                (Some(keys), _) => return Ok(Some(plan(CredentialSource::Keys(keys), roles))),
                (None, Some(role)) => {
                    roles.push(role);
                    next(profile)?.filter(|next| *next != name)
                }
                (None, None) => None,
            };
            match next {
                Some(next) => name = next,
                None => {
                    let source = self.source(profile)?;
                    if source.is_none() && !roles.is_empty() {
                        return Err(bad("its source has no credentials"));
                    }
                    return Ok(source.map(|source| plan(source, roles)));
                }
            }
        }
    }

    /// Returns the credential source of a profile that does not depend on another one.
    fn source(&self, profile: &Properties) -> Result<Option<CredentialSource>> {
        let property = |name| get(profile, name).map(str::to_owned);
        if let Some(source) = get(profile, "credential_source") {
            return match source {
                "Environment" => Ok(Some(CredentialSource::Environment)),
                "EcsContainer" => Ok(Some(CredentialSource::Container)),
                "Ec2InstanceMetadata" => Ok(Some(CredentialSource::Instance)),
                _ => Err(bad("unknown `credential_source`")),
            };
        }
        if let Some(token_file) = get(profile, TOKEN_FILE) {
            let role = role(profile).ok_or_else(|| bad("missing `role_arn`"))?;
            return Ok(Some(CredentialSource::WebIdentity { role, token_file: token_file.into() }));
        }
        if ["sso_session", "sso_start_url", "sso_account_id"].iter().any(|n| property(n).is_some())
        {
            return self.sso(profile).map(Some);
        }
        match property("credential_process") {
            Some(command) => Ok(Some(CredentialSource::Process(command))),
            None => Ok(keys(profile)?.map(CredentialSource::Keys)),
        }
    }

    fn sso(&self, profile: &Properties) -> Result<CredentialSource> {
        let incomplete = || bad("incomplete `sso_…` properties");
        let (session, cached_as) = match get(profile, "sso_session") {
            Some(name) => (self.sections.get(&format!("sso-session {name}")), Some(name)),
            None => (Some(profile), get(profile, "sso_start_url")),
        };
        let of_profile = |name| get(profile, name).map(str::to_owned).ok_or_else(incomplete);
        let region = session.and_then(|session| get(session, "sso_region"));
        Ok(CredentialSource::Sso {
            account: of_profile("sso_account_id")?,
            role: of_profile("sso_role_name")?,
            region: region.ok_or_else(incomplete)?.to_owned(),
            cached_as: cached_as.ok_or_else(incomplete)?.to_owned(),
        })
    }
}

const TOKEN_FILE: &str = "web_identity_token_file";

fn plan(source: CredentialSource, mut roles: Vec<AssumedRole>) -> CredentialPlan {
    roles.reverse();
    CredentialPlan { source, roles }
}

fn get<'a>(properties: &'a Properties, name: &str) -> Option<&'a str> {
    properties.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

fn role(profile: &Properties) -> Option<AssumedRole> {
    let property = |name| get(profile, name).map(str::to_owned);
    Some(AssumedRole {
        arn: property("role_arn")?,
        session: property("role_session_name"),
        external_id: property("external_id"),
    })
}

/// Returns the profile whose credentials assume the role; `None` if the profile has its own source.
fn next(profile: &Properties) -> Result<Option<&str>> {
    match (get(profile, "source_profile"), get(profile, "credential_source")) {
        (Some(next), None) => Ok(Some(next)),
        (None, Some(_)) => Ok(None),
        _ => Err(bad("a `role_arn` needs either `source_profile` or `credential_source`")),
    }
}

fn keys(profile: &Properties) -> Result<Option<Credential>> {
    let property = |name| get(profile, name).map(str::to_owned);
    match (property("aws_access_key_id"), property("aws_secret_access_key")) {
        (Some(access_key_id), Some(secret_access_key)) => Ok(Some(Credential {
            access_key_id,
            secret_access_key,
            session_token: property("aws_session_token"),
            expires_in: None,
        })),
        (None, None) => Ok(None),
        _ => Err(bad("incomplete access key")),
    }
}

fn bad(why: &str) -> Error {
    failure::unusable_source(format!("cannot use the AWS profile: {why}"))
}
