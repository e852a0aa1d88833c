//! Builds the OAuth settings of a remote service.

use serde_json::json;

use crate::decode::Field;
use crate::oauth::OAuthSettings;
use crate::raw::RawAuth;

use super::server::ServerBuilder;

impl ServerBuilder<'_, '_> {
    pub(super) fn oauth(&mut self, auth: Field<RawAuth>) -> OAuthSettings {
        let Some(auth) = auth else { return OAuthSettings::default() };
        let RawAuth {
            client_id,
            client_secret,
            authorization_server_url,
            scopes,
            client_metadata_url,
            redirect_port,
        } = auth.value;
        if let (Some(secret), None) = (&client_secret, &client_id) {
            let help = "add `clientId`, the id that the secret belongs to";
            self.cx
                .found
                .push(secret.error("a client secret needs a client id", "alone").help(help));
        }
        let client_secret = client_secret
            .and_then(|secret| self.one_credential("auth.clientSecret", "clientSecret", &secret));
        OAuthSettings {
            client_id: self.word("auth.clientId", client_id),
            client_secret,
            authorization_server_url: authorization_server_url
                .and_then(|url| self.address("auth.authorizationServerUrl", &url)),
            scopes: scopes.map(|scopes| {
                let scopes = self.list("auth.scopes", Some(scopes));
                scopes.iter().map(str::to_owned).collect()
            }),
            client_metadata_url: client_metadata_url
                .and_then(|url| self.address("auth.clientMetadataUrl", &url)),
            redirect_port: redirect_port.map(|port| {
                let origin = self.cx.origin(&port);
                self.note("auth.redirectPort", json!(port.value.0), origin);
                u16::try_from(port.value.0).unwrap_or(u16::MAX)
            }),
        }
    }
}
