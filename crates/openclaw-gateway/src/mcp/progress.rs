//! Reports the progress of a call to its caller.

use std::time::Duration;

use openclaw_mcp_client::wire::Progress;
use openclaw_protocol::mcp::ProgressEvent;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::callers::Connected;

/// Minimum interval between progress events.
const INTERVAL: Duration = Duration::from_millis(100);
/// Maximum length of a progress token, in bytes.
pub(crate) const MAX_TOKEN: usize = 256;

/// Waits for a call, and sends its latest progress to the caller a few times a second.
pub(crate) async fn with_progress<T>(
    caller: &Connected,
    token: &str,
    mut progress: watch::Receiver<Option<Progress>>,
    call: impl Future<Output = T>,
) -> T {
    let report = async {
        while progress.changed().await.is_ok() {
            let event = progress.borrow_and_update().as_ref().map(|it| ProgressEvent {
                token: token.to_owned(),
                done: it.done,
                percent: it.percent(),
                message: it.message.clone(),
            });
            if let Some(event) = event {
                caller.tell(event);
            }
            sleep(INTERVAL).await;
        }
        std::future::pending().await
    };
    tokio::select! {
        biased;
        called = call => called,
        never = report => never,
    }
}
