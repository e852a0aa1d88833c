//! A server that is connected and listed, for as long as it lives: its lists are kept fresh (T10), and
//! its health is watched (L8).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::client::Changes;
use crate::connection::Connection;
use crate::health::{self, Patient};
use crate::process::Patience;
use crate::shelf::Shelf;
use crate::supervisor::{Live, Trouble};
use crate::wire::{CallError, Limits};

/// A server may say many times in a row that a list has changed: it is asked once it is quiet.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// How long a sign of life may take.
const PING: Limits = Limits { timeout: Duration::from_secs(15), cap: Duration::from_secs(15) };

/// A server that is connected and listed.
#[derive(Debug)]
pub struct Attached {
    connection: Connection,
    shelf: Arc<Shelf>,
    /// How often to list, whatever the server says.
    every: Option<Duration>,
    limits: Limits,
    since: Instant,
    is_given_up: AtomicBool,
}

impl Attached {
    pub(crate) fn new(
        connection: Connection,
        shelf: Arc<Shelf>,
        every: Option<Duration>,
        limits: Limits,
    ) -> Self {
        Self {
            connection,
            shelf,
            every,
            limits,
            since: Instant::now(),
            is_given_up: AtomicBool::new(false),
        }
    }

    /// Whether the caller is the first to give it up.
    pub(crate) fn gives_up_first(&self) -> bool {
        !self.is_given_up.swap(true, Ordering::Relaxed)
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// For how long it has been connected.
    pub fn uptime(&self) -> Duration {
        self.since.elapsed()
    }

    /// Keeps the lists fresh.
    async fn keep_fresh(&self) {
        let mut changes = self.connection.client().changes();
        let mut known = Changes::default();
        loop {
            let everything = Changes { tools: 1, resources: 1, prompts: 1 };
            let changed = tokio::select! {
                told = changes.changed() => {
                    if told.is_err() {
                        return;
                    }
                    sleep(DEBOUNCE).await;
                    let now = *changes.borrow_and_update();
                    let changed = now.since(known);
                    known = now;
                    changed
                }
                () = sleep_or_never(self.every) => everything,
            };
            self.list_again(changed).await;
        }
    }

    /// Lists anew what has changed, and puts it on the shelf.
    pub(crate) async fn list_again(&self, changed: Changes) {
        let server = self.shelf.server();
        let old = self.shelf.inventory();
        match old.list_again(server, &self.connection, changed, self.limits).await {
            Ok(inventory) => self.shelf.put(inventory, &self.connection),
            // The old list stays; if the connection is lost, that is found out elsewhere.
            Err(error) => tracing::warn!(%server, %error, "its lists cannot be read again"),
        }
    }
}

impl Patient for Attached {
    async fn ping(&self) -> Result<(), CallError> {
        self.connection.ping(PING).await
    }

    fn is_busy(&self) -> bool {
        self.connection.in_flight() > 0
    }
}

async fn sleep_or_never(duration: Option<Duration>) {
    match duration {
        Some(duration) => sleep(duration).await,
        None => std::future::pending().await,
    }
}

impl Live for Attached {
    async fn lost(&self) -> Trouble {
        let keep_fresh = async {
            tokio::join!(self.keep_fresh(), self.connection.listen());
            std::future::pending::<String>().await
        };
        let message = tokio::select! {
            cause = self.connection.until_closed() => cause,
            cause = health::watch(self) => cause,
            never = keep_fresh => never,
        };
        Trouble { message, hint: None, last_lines: self.connection.last_lines() }
    }

    async fn close(&self) {
        self.connection.close(Patience::default()).await;
    }
}
