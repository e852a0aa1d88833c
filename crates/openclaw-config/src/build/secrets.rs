//! Builds the settings of the secret providers.

use std::collections::BTreeMap;
use std::time::Duration;

use openclaw_secrets::{
    AwsSettings, ExecCommand, GcpSettings, KvVersion, SecretSettings, SecretString, VaultSettings,
};
use serde_json::json;

use crate::credential::{REDACTED, safe_args};
use crate::decode::{Field, Spanned};
use crate::raw::{RawAws, RawExec, RawGcp, RawSecrets, RawVault};
use crate::setting::Setting;
use crate::text::ConfigText;

use super::values::{Builder, Unset};

impl Builder<'_> {
    pub(crate) fn secrets(&mut self, raw: RawSecrets, noted: &mut Vec<Setting>) -> SecretSettings {
        let RawSecrets { timeout, exec, gcp, aws, vault } = raw;
        let RawGcp { project, endpoint: gcp_endpoint } = inner(gcp);
        let RawAws { region, profile, endpoint: aws_endpoint } = inner(aws);
        let RawVault { address, namespace, role_id, approle_mount, ca_file, kv_version } =
            inner(vault);
        let exec = exec.map(|exec| exec.value.0).unwrap_or_default();
        for (name, command) in &exec {
            self.note_command(name, command, noted);
        }
        let default =
            u64::try_from(openclaw_secrets::DEFAULT_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
        SecretSettings {
            timeout: self.millis(noted, "secrets.timeoutMs", timeout, default),
            base_dir: self.base.to_path_buf(),
            home: self.home.map(std::path::Path::to_path_buf),
            exec: exec
                .into_iter()
                .filter_map(|(name, command)| Some((name, self.exec(command)?)))
                .collect(),
            gcp: GcpSettings {
                project: self.word(project, noted),
                endpoint: self.endpoint(gcp_endpoint, noted),
            },
            aws: AwsSettings {
                region: self.word(region, noted),
                profile: self.word(profile, noted),
                endpoint: self.endpoint(aws_endpoint, noted),
            },
            vault: VaultSettings {
                address: self.endpoint(address, noted),
                namespace: self.word(namespace, noted),
                role_id: self.word(role_id, noted),
                approle_mount: self.word(approle_mount, noted),
                ca_file: ca_file.and_then(|file| {
                    self.note(noted, &file.path, &file, json!(file.value.0));
                    self.path(&file, &mut Unset::Refused)
                }),
                kv_version: kv_version.map(|version| {
                    self.note(noted, &version.path, &version, json!(version.value.0));
                    if version.value.0 == 1 { KvVersion::V1 } else { KvVersion::V2 }
                }),
                // Credentials for Vault itself come from the environment, never from this file.
                token: None,
                secret_id: None,
            },
        }
    }

    /// Records a command; its arguments and variables may contain credentials.
    fn note_command(&self, name: &str, exec: &Spanned<RawExec>, noted: &mut Vec<Setting>) {
        let RawExec { command, args, env, timeout } = &exec.value;
        let key = |key: &str| format!("secrets.exec.{name}.{key}");
        if let Some(command) = command {
            self.note(noted, &key("command"), command, json!(command.value.0));
        }
        if let Some(args) = args {
            let written = args.value.iter().map(|arg| arg.value.0.as_str());
            self.note(noted, &key("args"), args, json!(safe_args(written)));
        }
        for (variable, value) in env.iter().flat_map(|env| &env.value.0) {
            self.note(noted, &key(&format!("env.{variable}")), value, json!(REDACTED));
        }
        if let Some(timeout) = timeout {
            self.note(noted, &key("timeoutMs"), timeout, json!(timeout.value.0));
        }
    }

    fn exec(&mut self, exec: Spanned<RawExec>) -> Option<ExecCommand> {
        let place = Spanned { value: (), at: exec.at, path: exec.path };
        let RawExec { command, args, env, timeout } = exec.value;
        let Some(command) = command else {
            let help = "add `command`, the program that prints the secret";
            self.found.push(place.error("missing `command`", "no `command`").help(help));
            return None;
        };
        let command = self.filled(&command, &mut Unset::Refused)?;
        let args = args.map(|args| self.words(&args, &mut Unset::Refused)).unwrap_or_default();
        let env = env.map(|env| env.value.0).unwrap_or_default();
        let env: BTreeMap<_, _> = env
            .into_iter()
            .filter_map(|(name, text)| {
                let value = self.plain(&text, &mut Unset::Refused)?;
                Some((name, SecretString::from(value.as_str().to_owned())))
            })
            .collect();
        Some(ExecCommand {
            command: command.as_str().to_owned(),
            args: args.iter().map(|arg| arg.as_str().to_owned()).collect(),
            env,
            timeout: timeout.map(|timeout| Duration::from_millis(timeout.value.0)),
        })
    }

    fn word(&mut self, text: Field<ConfigText>, noted: &mut Vec<Setting>) -> Option<String> {
        let text = text?;
        let word = self.filled(&text, &mut Unset::Refused)?;
        self.note(noted, &text.path, &text, json!(word.written()));
        Some(word.as_str().to_owned())
    }

    fn endpoint(&mut self, text: Field<ConfigText>, noted: &mut Vec<Setting>) -> Option<String> {
        let text = text?;
        let url = self.url(&text, &mut Unset::Refused)?;
        self.note(noted, &text.path, &text, json!(url.to_string()));
        Some(url.expose().as_str().trim_end_matches('/').to_owned())
    }
}

fn inner<T: Default>(section: Field<T>) -> T {
    section.map(|section| section.value).unwrap_or_default()
}
