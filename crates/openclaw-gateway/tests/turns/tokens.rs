//! Access tokens with limited scopes, on a socket.

use std::time::Duration;

use openclaw_gateway::serve::Served;
use openclaw_gateway::tokens::TokenStore;
use openclaw_protocol::client::{Client, ConnectError, ConnectOptions};
use openclaw_protocol::config::ReloadParams;
use openclaw_protocol::health::HealthParams;
use openclaw_protocol::{RequestError, Rpc, Scope, ask, detail, rpc};
use openclaw_secrets::SecretString;
use serde_json::json;
use tokio::time::timeout;

use crate::common::connect_options;
use crate::support::{LONG, Place, config};

/// A client with a token, or with the gateway's own one. It requests all scopes.
async fn client(
    served: &Served,
    token: Option<SecretString>,
    role: &str,
) -> Result<Client, ConnectError> {
    let own = connect_options(served);
    let token = token.or(own.token);
    Client::connect(&ConnectOptions { token, role: role.to_owned(), ..own }).await
}

async fn asked<R: Rpc>(client: &Client, params: R::Params) -> Result<(), RequestError> {
    timeout(LONG, ask::<R>(client, params)).await.unwrap().map(drop)
}

/// The code of the rejection of a request.
fn code(result: Result<(), RequestError>) -> Option<String> {
    match result.unwrap_err() {
        RequestError::Refused(error) => error.detail(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_client_can_do_what_its_token_allows_and_no_more() {
    let place = Place::new(&config(&json!({})));
    let served = place.serve(None).await;
    let store = TokenStore::new(served.state());
    let token = store.create("phone", &[Scope::Read]).unwrap();
    let phone = client(&served, Some(token), "operator").await.unwrap();
    assert_eq!(phone.hello().auth.scopes, ["operator.read"], "it has requested all");
    asked::<rpc::Health>(&phone, HealthParams::default()).await.unwrap();
    let refused = asked::<rpc::ConfigReload>(&phone, ReloadParams::default()).await;
    assert_eq!(code(refused).as_deref(), Some(detail::MISSING_SCOPE));

    let wrong = SecretString::from("oc_wrong".to_owned());
    let error = client(&served, Some(wrong), "operator").await.unwrap_err();
    assert!(error.to_string().contains("rejected the token"), "{error}");

    let own = client(&served, None, "operator").await.unwrap();
    asked::<rpc::ConfigReload>(&own, ReloadParams::default()).await.unwrap();
    let node = client(&served, None, "node").await.unwrap();
    assert_eq!(node.hello().auth.scopes, Vec::<String>::new());
    let refused = asked::<rpc::ConfigReload>(&node, ReloadParams::default()).await;
    assert_eq!(code(refused).as_deref(), Some(detail::MISSING_SCOPE));
    drop((phone, own, node));
    served.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_revoked_token_ends_its_connections_and_admits_no_more() {
    let place = Place::new(&config(&json!({})));
    let served = place.serve(None).await;
    let store = TokenStore::new(served.state());
    let tokens = ["phone", "laptop"].map(|name| store.create(name, &[Scope::Read]).unwrap());
    let [phone_token, laptop_token] = tokens;
    let phone = client(&served, Some(phone_token.clone()), "operator").await.unwrap();
    let laptop = client(&served, Some(laptop_token), "operator").await.unwrap();
    asked::<rpc::Health>(&phone, HealthParams::default()).await.unwrap();
    store.revoke("phone").unwrap();
    asked::<rpc::Health>(&phone, HealthParams::default()).await.unwrap_err();
    client(&served, Some(phone_token), "operator").await.unwrap_err();
    asked::<rpc::Health>(&laptop, HealthParams::default()).await.unwrap();
    drop((phone, laptop));
    served.stop(Duration::ZERO).await;
}
