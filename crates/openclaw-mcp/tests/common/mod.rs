//! Configurations, and what is left of servers.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::Path;
use std::time::Duration;

use openclaw_config::{Config, LoadEnvironment, load_text};
use openclaw_mcp_client::wire::TimeLimits;
use openclaw_testkit::{Script, TestServer, processes};
use serde_json::Value;

/// Enough for a busy machine.
pub(crate) const LIMITS: TimeLimits =
    TimeLimits { timeout: Duration::from_secs(120), cap: Duration::from_secs(300) };

/// The command line of a server of the testkit.
pub(crate) fn scripted(script: &Script) -> (String, Vec<String>) {
    let (program, args) = TestServer::stdio(script);
    (program.to_str().unwrap().to_owned(), args)
}

/// Loads a configuration, which must be valid.
pub(crate) fn load(config: &Value) -> Config {
    let loaded =
        load_text(Path::new("openclaw.json"), &config.to_string(), LoadEnvironment::empty());
    match loaded.config {
        Some(config) => config,
        None => panic!("{:?}", loaded.report),
    }
}

/// Asserts that no process of a server is left. The tag is the name in its script.
pub(crate) async fn assert_nothing_left(tag: &'static str) {
    let left = tokio::task::spawn_blocking(move || {
        processes::wait_until_none(Duration::from_secs(60), || processes::mentioning(tag))
    });
    assert_eq!(left.await.unwrap(), Vec::<u32>::new());
}

/// Waits until the condition holds.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), waiting).await.unwrap();
}
