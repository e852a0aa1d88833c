//! `secret://aws/NAME[#VERSION]`: AWS Secrets Manager, with the credentials of the usual chain.
//!
//! `VERSION` is a staging label (`AWSPREVIOUS`) or a version id (a UUID). The SDK reads the `AWS_…`
//! variables and `~/.aws` by itself.

use std::{error::Error, sync::Arc};

use aws_config::{BehaviorVersion, Region};
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_secretsmanager::{
    Client, config,
    error::{ProvideErrorMetadata as _, SdkError},
    operation::get_secret_value::{GetSecretValueError, GetSecretValueOutput},
};
use futures_util::future::BoxFuture;

use super::{Context, Fetch, kept::Kept, text};
use crate::{ResolveErrorKind, SecretRef, SecretString, Settings, resolve_error::Failure};

/// Secrets Manager of one account.
pub(super) struct Aws {
    settings: Arc<Settings>,
    connection: Kept<Connection>,
}

struct Connection {
    client: Client,
    has_region: bool,
}

impl Aws {
    pub(super) fn new(context: &Context) -> Self {
        Self { settings: context.settings.clone(), connection: Kept::new() }
    }

    async fn get(&self, reference: &SecretRef) -> Result<SecretString, Failure> {
        let connection = self.connection.get(async || Ok(self.connect().await)).await?;
        let name = reference.name();
        let region = region_of(name);
        if region.is_none() && !connection.has_region {
            return Err(Failure::new(
                ResolveErrorKind::NotConfigured,
                "the AWS region is not known",
            )
            .hint("set `secrets.aws.region` in the config, or `AWS_REGION`"));
        }
        let mut request = connection.client.get_secret_value().secret_id(name);
        match reference.selector() {
            Some(version) if is_uuid(version) => request = request.version_id(version),
            Some(version) => request = request.version_stage(version),
            None => {}
        }
        let mut request = request.customize();
        if let Some(region) = region {
            request = request.config_override(config::Builder::new().region(Region::new(region)));
        }
        value(request.send().await.map_err(|error| failure(&error, name))?)
    }

    async fn connect(&self) -> Connection {
        let settings = &self.settings.aws;
        let mut loader = aws_config::defaults(BehaviorVersion::latest());
        if let Some(profile) = &settings.profile {
            loader = loader.profile_name(profile);
        }
        if let Some(region) = &settings.region {
            loader = loader.region(Region::new(region.clone()));
        }
        let shared = loader.load().await;
        let mut config = config::Builder::from(&shared);
        // Not on the loader, where it would also redirect the services that hand out credentials.
        if let Some(endpoint) = &settings.endpoint {
            config = config.endpoint_url(endpoint);
        }
        let has_region = shared.region().is_some();
        Connection { client: Client::from_conf(config.build()), has_region }
    }
}

impl Fetch for Aws {
    fn fetch<'a>(
        &'a self,
        reference: &'a SecretRef,
    ) -> BoxFuture<'a, Result<SecretString, Failure>> {
        Box::pin(async {
            let value = self.get(reference).await;
            self.connection.check(&value).await;
            value
        })
    }
}

/// `arn:PARTITION:secretsmanager:REGION:ACCOUNT:secret:NAME` says where the secret is.
fn region_of(name: &str) -> Option<String> {
    match name.split(':').collect::<Vec<_>>()[..] {
        ["arn", _, "secretsmanager", region, ..] if !region.is_empty() => Some(region.to_owned()),
        _ => None,
    }
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

fn value(output: GetSecretValueOutput) -> Result<SecretString, Failure> {
    match (output.secret_string, output.secret_binary) {
        (Some(text), _) => Ok(SecretString::from(text)),
        (None, Some(bytes)) => text::into_text(bytes.into_inner()),
        (None, None) => Err(Failure::new(ResolveErrorKind::Empty, "the secret is empty")),
    }
}

/// What an error means. The service's own words are left out, except for the error's code.
fn failure(error: &SdkError<GetSecretValueError>, name: &str) -> Failure {
    use ResolveErrorKind as Kind;
    let service = match error {
        SdkError::ServiceError(error) => error.err(),
        SdkError::TimeoutError(_) => return unreachable_service("it does not answer"),
        SdkError::DispatchFailure(_) if lacks_credentials(error) => return no_credentials(),
        SdkError::ConstructionFailure(_) if lacks_credentials(error) => return no_credentials(),
        SdkError::DispatchFailure(_) => return unreachable_service("no connection"),
        SdkError::ResponseError(_) => return unreachable_service("its answer is not understood"),
        _ => return Failure::new(Kind::Failed, "the request to AWS could not be made"),
    };
    match service {
        GetSecretValueError::ResourceNotFoundException(_) => {
            Failure::new(Kind::NotFound, format!("AWS has no secret `{name}`, or not this version"))
                .hint("`aws secretsmanager list-secrets` shows what there is in the region")
        }
        GetSecretValueError::InvalidRequestException(_) => {
            let cause = "AWS cannot give the secret; it may be scheduled for deletion";
            Failure::new(Kind::NotFound, cause)
        }
        GetSecretValueError::InternalServiceError(_) => unreachable_service("an internal error"),
        GetSecretValueError::DecryptionFailure(_) => {
            Failure::new(Kind::Denied, "AWS cannot decrypt the secret with its KMS key")
                .hint("give the account the right `kms:Decrypt` on the key")
        }
        other => match other.code() {
            Some("ThrottlingException") => unreachable_service("too many requests"),
            Some(code @ ("AccessDeniedException" | "AccessDenied")) => {
                Failure::new(Kind::Denied, format!("AWS denies access to the secret ({code})"))
                    .hint("give the account the right `secretsmanager:GetSecretValue` on it")
            }
            Some(
                code @ ("UnrecognizedClientException"
                | "InvalidSignatureException"
                | "ExpiredTokenException"
                | "IncompleteSignature"
                | "InvalidClientTokenId"
                | "SignatureDoesNotMatch"),
            ) => {
                Failure::new(Kind::Denied, format!("AWS does not accept the credentials ({code})"))
                    .hint("log in again: `aws sso login`, or `aws configure`")
            }
            // Not every refusal comes with a code that the SDK finds: a gateway's is a bare status.
            None if error
                .raw_response()
                .is_some_and(|raw| matches!(raw.status().as_u16(), 401 | 403)) =>
            {
                Failure::new(Kind::Denied, "AWS does not accept the credentials")
                    .hint("log in again: `aws sso login`, or `aws configure`")
            }
            code => {
                let cause = format!("AWS answered with the error {}", code.unwrap_or("unknown"));
                Failure::new(Kind::Failed, cause)
            }
        },
    }
}

/// Whether it is the credentials that failed, somewhere down the chain.
fn lacks_credentials(error: &SdkError<GetSecretValueError>) -> bool {
    let mut source = error.source();
    while let Some(error) = source {
        if error.is::<CredentialsError>() {
            return true;
        }
        source = error.source();
    }
    false
}

fn no_credentials() -> Failure {
    Failure::new(ResolveErrorKind::NotConfigured, "there are no AWS credentials")
        .hint("set them up with `aws configure` or `aws sso login`, or name `secrets.aws.profile`")
}

fn unreachable_service(why: &str) -> Failure {
    let cause = format!("AWS Secrets Manager cannot be reached: {why}");
    Failure::new(ResolveErrorKind::Unreachable, cause)
        .hint("check the network, the region and the endpoint")
}
