//! The region of a secret, and the endpoint of Secrets Manager there.

use bytes::Bytes;
use http::Request;

use super::{failure, profiles::Profiles};
use crate::{ResolveErrorKind, providers::ProviderContext, resolve_error::ProviderFailure};

/// The region and the endpoint from the settings, the environment and the profile.
pub(super) struct AwsEndpoint {
    region: Option<String>,
    endpoint: Option<String>,
    wants_fips: bool,
    metadata: Option<String>,
}

impl AwsEndpoint {
    pub(super) fn new(context: &ProviderContext, profiles: &Profiles) -> Self {
        let settings = &context.settings.aws;
        let variable = |name| context.environment.get_set(name);
        let property = |name| profiles.property(name).map(str::to_owned);
        let region = settings.region.clone();
        let region = region.or_else(|| variable("AWS_REGION"));
        let region = region.or_else(|| variable("AWS_DEFAULT_REGION"));
        let endpoint = settings.endpoint.clone();
        let endpoint = endpoint.or_else(|| variable("AWS_ENDPOINT_URL_SECRETS_MANAGER"));
        let endpoint = endpoint.or_else(|| variable("AWS_ENDPOINT_URL"));
        let fips = variable("AWS_USE_FIPS_ENDPOINT").or_else(|| property("use_fips_endpoint"));
        Self {
            region: region.or_else(|| property("region")),
            endpoint: endpoint.or_else(|| property("endpoint_url")),
            wants_fips: fips.is_some_and(|value| value.eq_ignore_ascii_case("true")),
            metadata: metadata_service(context),
        }
    }

    pub(super) fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    /// Returns the region of a secret. Queries the instance metadata only if none is configured.
    pub(super) async fn region_for(
        &self,
        name: &str,
        host: &reqsign_core::Context,
    ) -> Result<String, ProviderFailure> {
        let known = region_of(name).or_else(|| self.region.clone());
        let region = match (known, &self.metadata) {
            (Some(region), _) => Some(region),
            (None, Some(root)) => region_of_machine(root, host).await,
            (None, None) => None,
        };
        let hint = "set `secrets.aws.region` in the configuration, or `AWS_REGION`";
        let not_configured =
            |cause: &str| ProviderFailure::new(ResolveErrorKind::NotConfigured, cause).hint(hint);
        let region = region.ok_or_else(|| not_configured("no AWS region configured"))?;
        // It becomes part of a host name and must not change the host.
        let is_label = (1..=63).contains(&region.len())
            && region.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if is_label { Ok(region) } else { Err(not_configured("invalid AWS region")) }
    }

    /// Returns the URL of Secrets Manager.
    pub(super) fn endpoint(&self, region: &str) -> Result<String, ProviderFailure> {
        if let Some(endpoint) = &self.endpoint {
            let url = reqwest::Url::parse(endpoint).map_err(|_| failure::not_sent())?;
            return Ok(url.into());
        }
        let service = if self.wants_fips { "secretsmanager-fips" } else { "secretsmanager" };
        Ok(format!("https://{service}.{region}.{}/", domain(region)))
    }
}

/// Returns the domain of the partition that a region belongs to.
fn domain(region: &str) -> &'static str {
    const DOMAINS: [(&str, &str); 6] = [
        ("cn-", "amazonaws.com.cn"),
        ("eusc-", "amazonaws.eu"),
        ("us-isob-", "sc2s.sgov.gov"),
        ("us-iso-", "c2s.ic.gov"),
        ("eu-isoe-", "cloud.adc-e.uk"),
        ("us-isof-", "csp.hci.ic.gov"),
    ];
    let found = DOMAINS.iter().find(|(prefix, _)| region.starts_with(prefix));
    found.map_or("amazonaws.com", |(_, domain)| domain)
}

/// Returns the region in `arn:PARTITION:secretsmanager:REGION:ACCOUNT:secret:NAME`.
fn region_of(name: &str) -> Option<String> {
    match name.split(':').collect::<Vec<_>>()[..] {
        ["arn", _, "secretsmanager", region, ..] if !region.is_empty() => Some(region.to_owned()),
        _ => None,
    }
}

/// Returns the URL of the instance metadata service, unless it is disabled.
pub(super) fn metadata_service(context: &ProviderContext) -> Option<String> {
    let variable = |name| context.environment.get_set(name);
    let is = |name, wanted: &str| variable(name).is_some_and(|v| v.eq_ignore_ascii_case(wanted));
    if is("AWS_EC2_METADATA_DISABLED", "true") {
        return None;
    }
    Some(match variable("AWS_EC2_METADATA_SERVICE_ENDPOINT") {
        Some(root) => root.trim_end_matches('/').to_owned(),
        None if is("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6") => {
            "http://[fd00:ec2::254]".to_owned()
        }
        None => "http://169.254.169.254".to_owned(),
    })
}

async fn region_of_machine(root: &str, host: &reqsign_core::Context) -> Option<String> {
    let token = Request::put(format!("{root}/latest/api/token"))
        .header("x-aws-ec2-metadata-token-ttl-seconds", "60")
        .body(Bytes::new())
        .ok()?;
    let token = host.http_send_as_string(token).await.ok().filter(|r| r.status().is_success())?;
    let region = Request::get(format!("{root}/latest/meta-data/placement/region"))
        .header("x-aws-ec2-metadata-token", token.body())
        .body(Bytes::new())
        .ok()?;
    let region = host.http_send_as_string(region).await.ok().filter(|r| r.status().is_success())?;
    Some(region.into_body().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aws(wants_fips: bool) -> AwsEndpoint {
        AwsEndpoint { region: None, endpoint: None, wants_fips, metadata: None }
    }

    #[test]
    fn the_url_follows_from_the_region() {
        let address = |region| aws(false).endpoint(region).expect("URL");
        assert_eq!(address("eu-west-1"), "https://secretsmanager.eu-west-1.amazonaws.com/");
        assert_eq!(address("cn-north-1"), "https://secretsmanager.cn-north-1.amazonaws.com.cn/");
        let fips = aws(true).endpoint("us-east-1").expect("URL");
        assert_eq!(fips, "https://secretsmanager-fips.us-east-1.amazonaws.com/");
    }

    #[tokio::test]
    async fn a_region_that_would_change_the_host_is_rejected() {
        let name = "arn:aws:secretsmanager:evil.example/#:1:secret:x";
        let region = aws(false).region_for(name, &reqsign_core::Context::new()).await;
        assert_eq!(region.expect_err("rejected").kind, ResolveErrorKind::NotConfigured);
    }
}
