//! The chain of places where AWS credentials are searched.

use std::fmt;

use reqsign_aws_v4::{
    AssumeRoleCredentialProvider, AssumeRoleWithWebIdentityCredentialProvider, Credential,
    ECSCredentialProvider, EnvCredentialProvider, IMDSv2CredentialProvider, RequestSigner,
    SSOCredentialProvider, StaticCredentialProvider,
};
use reqsign_core::{Context as Host, ProvideCredential, Result, Signer};

use super::{
    endpoint, failure, process,
    profiles::{AssumedRole, CredentialPlan, CredentialSource, Profiles},
};
use crate::{
    SecretString,
    providers::{ProviderContext, http},
};

/// The session name in AWS's audit log, unless the profile sets one.
const SESSION: &str = "openclaw";
/// The region of STS if none is configured.
const STS_REGION: &str = "us-east-1";

/// The credential chain, in the order of the AWS SDKs: environment, profile, web identity,
/// container, instance.
///
/// A configured source that fails ends the search: to continue would be to use another identity.
/// (The library's `DefaultCredentialProvider` is not used because it continues.)
pub(super) struct Chain {
    profiles: Profiles,
    region: String,
    metadata: Option<String>,
    secret_key: http::ProviderCredential,
    session_token: http::ProviderCredential,
}

impl Chain {
    pub(super) fn new(
        context: &ProviderContext,
        profiles: Profiles,
        region: Option<String>,
    ) -> Self {
        Self {
            profiles,
            region: region.unwrap_or_else(|| STS_REGION.to_owned()),
            metadata: endpoint::metadata_service(context),
            secret_key: http::ProviderCredential::new(context.redactor.clone()),
            session_token: http::ProviderCredential::new(context.redactor.clone()),
        }
    }

    async fn search(&self, host: &Host) -> Result<Option<Credential>> {
        if let Some(credential) = self.load(CredentialSource::Environment, host).await? {
            return Ok(Some(credential));
        }
        if let Some(plan) = self.profiles.plan()? {
            return self.follow(plan, host).await;
        }
        let web_identity = AssumeRoleWithWebIdentityCredentialProvider::new();
        if let Some(credential) = self.web_identity(web_identity, None, host).await? {
            return Ok(Some(credential));
        }
        for source in [CredentialSource::Container, CredentialSource::Instance] {
            if let Some(credential) = self.load(source, host).await? {
                return Ok(Some(credential));
            }
        }
        Ok(None)
    }

    async fn follow(&self, plan: CredentialPlan, host: &Host) -> Result<Option<Credential>> {
        let mut credential = self.load(plan.source, host).await?;
        for role in plan.roles {
            let no_source = || {
                failure::unusable_source(
                    "cannot use the AWS profile: its source has no credentials",
                )
            };
            let with = credential.ok_or_else(no_source)?;
            credential = self.assume(role, &with, host).await?;
        }
        Ok(credential)
    }

    async fn load(&self, source: CredentialSource, host: &Host) -> Result<Option<Credential>> {
        match source {
            CredentialSource::Keys(credential) => Ok(Some(credential)),
            CredentialSource::Environment => {
                EnvCredentialProvider::new().provide_credential(host).await
            }
            CredentialSource::Container => {
                ECSCredentialProvider::new().provide_credential(host).await
            }
            CredentialSource::Instance => match &self.metadata {
                Some(root) => {
                    let instance = IMDSv2CredentialProvider::new().with_endpoint(root);
                    instance.provide_credential(host).await
                }
                None => Ok(None),
            },
            CredentialSource::Process(command) => process::credential(&command).await.map(Some),
            CredentialSource::Sso { account, role, region, cached_as } => {
                let sso = SSOCredentialProvider::new()
                    .with_account_id(account)
                    .with_role_name(role)
                    .with_region(region)
                    // The library uses it only to find the token file, which is named after the
                    // session if there is one.
                    .with_start_url(cached_as);
                sso.provide_credential(host).await
            }
            CredentialSource::WebIdentity { role, token_file } => {
                let provider =
                    AssumeRoleWithWebIdentityCredentialProvider::with_config(role.arn, token_file);
                self.web_identity(provider, role.session, host).await
            }
        }
    }

    async fn web_identity(
        &self,
        provider: AssumeRoleWithWebIdentityCredentialProvider,
        session: Option<String>,
        host: &Host,
    ) -> Result<Option<Credential>> {
        let session = session.or_else(|| host.env_var("AWS_ROLE_SESSION_NAME"));
        let provider = provider
            .with_role_session_name(session.unwrap_or_else(|| SESSION.to_owned()))
            .with_region(self.region.clone())
            .with_regional_sts_endpoint();
        provider.provide_credential(host).await
    }

    async fn assume(
        &self,
        role: AssumedRole,
        with: &Credential,
        host: &Host,
    ) -> Result<Option<Credential>> {
        let mut keys = StaticCredentialProvider::new(&with.access_key_id, &with.secret_access_key);
        if let Some(token) = &with.session_token {
            keys = keys.with_session_token(token);
        }
        let signer = Signer::new(host.clone(), keys, RequestSigner::new("sts", &self.region));
        let mut provider = AssumeRoleCredentialProvider::new(role.arn, signer)
            .with_role_session_name(role.session.unwrap_or_else(|| SESSION.to_owned()))
            .with_region(self.region.clone())
            .with_regional_sts_endpoint();
        if let Some(id) = role.external_id {
            provider = provider.with_external_id(id);
        }
        provider.provide_credential(host).await
    }
}

impl ProvideCredential for Chain {
    type Credential = Credential;

    async fn provide_credential(&self, host: &Host) -> Result<Option<Credential>> {
        let found = self.search(host).await?;
        if let Some(credential) = &found {
            self.secret_key.set(SecretString::from(credential.secret_access_key.as_str()));
            if let Some(token) = &credential.session_token {
                self.session_token.set(SecretString::from(token.as_str()));
            }
        }
        Ok(found)
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chain")
    }
}
