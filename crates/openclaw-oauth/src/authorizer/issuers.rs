//! The authorization server of the MCP server: what the user has confirmed, or is asked about it.

use std::collections::BTreeSet;

use url::Url;

use crate::confirmation::{IssuerPin, KnownClient, check};
use crate::error::AuthError;
use crate::grant::Grant;
use crate::issuer::{ConfirmedIssuer, IssuerDoubt, UnconfirmedIssuer};
use crate::quote::quoted;
use crate::store::StoredIssuer;

use super::Authorizer;

impl Authorizer {
    /// Confirms the authorization server of the MCP server: from now on it is the only one that gets the
    /// credentials of the configuration. If a login has failed with a doubt about it, also what the
    /// doubt was about.
    ///
    /// # Errors
    /// [`AuthError::Unconfirmed`] if the MCP server names another one, [`AuthError::NotAboutTokens`] if
    /// it requires no token, and others if that cannot be found out or stored.
    pub async fn confirm_issuer(&self, issuer: &str) -> Result<(), AuthError> {
        if self.challenge().is_none() {
            self.probe().await?;
        }
        let wanted = IssuerPin::Issuer(ConfirmedIssuer::new(issuer));
        let discovery = self.discover(&wanted).await?;
        if discovery.server.issuer != issuer {
            let issuer = discovery.server.issuer;
            return Err(AuthError::Unconfirmed(Box::new(UnconfirmedIssuer {
                proposed: ConfirmedIssuer::new(&issuer),
                issuer,
                doubt: IssuerDoubt::NotNamed(quoted(wanted.issuer().unwrap_or_default())),
            })));
        }
        // What the user was shown. It may name another place now.
        let stored = self.0.options.store.issuer(&self.0.key).await.ok().flatten();
        let asked = stored.and_then(|stored| stored.asked).filter(|asked| asked.issuer == issuer);
        match (asked, self.pinned_issuer().await) {
            (Some(asked), _) => self.pin_issuer(asked).await,
            (None, IssuerPin::Issuer(known)) if known.issuer == issuer => {
                self.pin_issuer(known).await
            }
            (None, _) => self.pin_issuer(ConfirmedIssuer::new(issuer)).await,
        }
    }

    /// Stores what the user has confirmed.
    pub(super) async fn pin_issuer(&self, confirmed: ConfirmedIssuer) -> Result<(), AuthError> {
        tracing::info!(
            server = %self.0.key.server, issuer = confirmed.issuer, origins = ?confirmed.origins,
            client_id = confirmed.client_id, "confirmed an authorization server"
        );
        self.0.options.store.save_issuer(&self.0.key, &confirmed.into()).await
    }

    /// Remembers what the user is asked, so that a confirmation in another process is about that.
    pub(super) async fn note_question(&self, pin: &IssuerPin, unconfirmed: &UnconfirmedIssuer) {
        // What cannot be read is not replaced by less.
        if *pin == IssuerPin::Unreadable {
            return;
        }
        let asked = Some(unconfirmed.proposed.clone());
        let question = StoredIssuer { confirmed: pin.confirmed().cloned(), asked };
        if let Err(error) = self.0.options.store.save_issuer(&self.0.key, &question).await {
            tracing::warn!(server = %self.0.key.server, %error, "cannot store a question");
        }
    }

    /// Returns the clients that authorization servers are trusted with, of all MCP servers.
    pub(super) async fn known_clients(&self) -> Vec<KnownClient> {
        let store = &self.0.options.store;
        let (grants, pins) = (store.list().await, store.issuers().await);
        let of_grants = grants.unwrap_or_default().grants.into_iter().filter_map(|(_, stored)| {
            let grant = stored.ok()?.grant;
            Some(KnownClient { issuer: grant.issuer, id: grant.client.id })
        });
        // They are kept after a logout.
        let of_pins = pins.unwrap_or_default().into_iter().filter_map(|confirmed| {
            Some(KnownClient { issuer: confirmed.issuer, id: confirmed.client_id? })
        });
        of_grants.chain(of_pins).collect()
    }

    /// Returns the authorization server that the user must confirm before a token can be obtained
    /// without a user. Nothing is sent to it.
    ///
    /// # Errors
    /// If it cannot be found out; [`AuthError::NotAboutTokens`] if the MCP server requires no token.
    pub async fn unconfirmed_issuer(&self) -> Result<Option<UnconfirmedIssuer>, AuthError> {
        if self.challenge().is_none() {
            self.probe().await?;
        }
        let pin = self.pinned_issuer().await;
        let discovery = self.discover(&pin).await?;
        Ok(check(&discovery.server, &self.0.options.settings, &pin)
            .err()
            .map(|unconfirmed| *unconfirmed))
    }

    /// Returns the authorization server that was confirmed, or that issued the stored grant: grants of
    /// older versions are their own confirmation, and say what pins of older versions lack.
    pub(super) async fn pinned_issuer(&self) -> IssuerPin {
        let store = &self.0.options.store;
        let stored = match store.issuer(&self.0.key).await {
            Ok(stored) => stored.and_then(|stored| stored.confirmed),
            Err(error) => {
                tracing::warn!(server = %self.0.key.server, %error, "cannot read the confirmed issuer");
                return IssuerPin::Unreadable;
            }
        };
        if let Some(confirmed) = stored.as_ref().filter(|it| it.client_id.is_some()) {
            return IssuerPin::Issuer(confirmed.clone());
        }
        let grant = match store.load(&self.0.key).await {
            Ok(grant) => grant.map(|stored| stored.grant),
            Err(_) if stored.is_none() => return IssuerPin::Unreadable,
            Err(_) => None,
        };
        match (stored, grant) {
            (Some(confirmed), Some(grant)) if confirmed.issuer == grant.issuer => {
                IssuerPin::Issuer(with_grant(confirmed, &grant))
            }
            (Some(confirmed), _) => IssuerPin::Issuer(confirmed),
            (None, Some(grant)) => {
                IssuerPin::Issuer(with_grant(ConfirmedIssuer::new(&grant.issuer), &grant))
            }
            (None, None) => IssuerPin::None,
        }
    }

    /// Stores what only a grant of an older version confirms, before that is deleted.
    pub(super) async fn keep_confirmation(&self) -> Result<(), AuthError> {
        let IssuerPin::Issuer(confirmed) = self.pinned_issuer().await else { return Ok(()) };
        let store = &self.0.options.store;
        let stored = store.issuer(&self.0.key).await?.unwrap_or_default();
        if stored.confirmed.as_ref() == Some(&confirmed) {
            return Ok(());
        }
        let stored = StoredIssuer { confirmed: Some(confirmed), ..stored };
        store.save_issuer(&self.0.key, &stored).await
    }
}

/// Adds what the grant of an older version says about its authorization server.
fn with_grant(confirmed: ConfirmedIssuer, grant: &Grant) -> ConfirmedIssuer {
    let issuer = Url::parse(&grant.issuer).ok().map(|url| url.origin());
    let origin = grant.token_endpoint.origin();
    let elsewhere = (issuer.as_ref() != Some(&origin)).then(|| origin.ascii_serialization());
    let origins: BTreeSet<_> = confirmed.origins.into_iter().chain(elsewhere).collect();
    ConfirmedIssuer { client_id: Some(grant.client.id.clone()), origins, ..confirmed }
}
