//! The connection to a client: its methods, until it closes its end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    AuthenticateRequest, CancelNotification, CloseSessionRequest, DeleteSessionRequest,
    InitializeRequest, ListSessionsRequest, LoadSessionRequest, NewSessionRequest, PromptRequest,
    ResumeSessionRequest, SetSessionConfigOptionRequest, SetSessionModeRequest,
};
use agent_client_protocol::{
    Agent as AgentRole, ConnectTo, Error, Lines, on_receive_notification, on_receive_request,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::agent::{AcpAgent, AcpOptions};
use crate::lines;
use crate::request::Lenient;

/// How long requests may take to finish after the client has closed its end.
const FINISH: Duration = Duration::from_secs(2);

/// How long the connection may take to end after that.
const GIVE_UP: Duration = Duration::from_secs(5);

/// Why serving ended early.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the client failed: {0}")]
pub struct AcpServeError(String);

/// Serves a client until it closes `input`, then stops the MCP servers of all sessions.
///
/// # Errors
/// If reading or writing fails.
pub async fn serve(
    options: AcpOptions,
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> Result<(), AcpServeError> {
    // A task of its own: waking the future that a runtime blocks on costs a system call each time.
    let serving = AbortOnDropHandle::new(tokio::spawn(run(options, input, output)));
    serving.await.map_err(|error| AcpServeError(error.to_string()))?
}

async fn run(
    options: AcpOptions,
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> Result<(), AcpServeError> {
    let agent = Arc::new(AcpAgent::new(options));
    let outbox = Arc::clone(&agent.outbox);
    let (sink, queued) = lines::outgoing();
    let ended = CancellationToken::new();
    let incoming = lines::incoming(input, Arc::clone(&outbox), ended.clone());
    let transport = Lines::new(Box::pin(sink), Box::pin(incoming));
    let served = {
        let mut serving = Box::pin(connection(&agent, transport));
        let mut writing = Box::pin(lines::write(queued, output, &outbox));
        tokio::select! {
            served = &mut serving => {
                // What is queued is written, unless the client does not read it.
                drop(serving);
                let _ = timeout(FINISH, writing).await;
                served.map_err(|error| AcpServeError(error.message))
            }
            written = &mut writing => match written {
                // A client that is killed closes both ends, in any order.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                written => written.map_err(|error| AcpServeError(error.to_string())),
            },
            // The client has closed its end, and does not read what is left.
            () = async { ended.cancelled().await; sleep(GIVE_UP).await } => Ok(()),
        }
    };
    agent.close().await;
    served
}

/// Runs the connection. Handlers hold its dispatch loop: they only spawn.
async fn connection(
    agent: &Arc<AcpAgent>,
    transport: impl ConnectTo<AgentRole> + 'static,
) -> Result<(), Error> {
    macro_rules! on {
        ($builder:expr, $request:ty, |$agent:ident, $it:ident, $responder:ident, $cx:ident| $work:expr) => {{
            let $agent = Arc::clone(agent);
            $builder.on_receive_request(
                async move |$it: Lenient<$request>, $responder, $cx| {
                    $work;
                    Ok(())
                },
                on_receive_request!(),
            )
        }};
        ($builder:expr, $request:ty, $method:ident) => {
            on!($builder, $request, |agent, it, responder, _cx| {
                agent.answer(it, responder, AcpAgent::$method);
            })
        };
        ($builder:expr, $request:ty) => {
            on!($builder, $request, |agent, it, responder, cx| agent.opens(it, responder, cx))
        };
    }
    let builder = AgentRole.v1().name("openclaw");
    let builder = {
        let agent = Arc::clone(agent);
        builder.on_receive_request(
            async move |request: InitializeRequest, responder, _| {
                responder.respond(agent.initialize(request))
            },
            on_receive_request!(),
        )
    };
    let builder = on!(builder, AuthenticateRequest, authenticate);
    let builder = on!(builder, NewSessionRequest);
    let builder = on!(builder, LoadSessionRequest);
    let builder = on!(builder, ResumeSessionRequest);
    let builder = on!(builder, ListSessionsRequest, list_sessions);
    let builder = on!(builder, CloseSessionRequest, close_session);
    let builder = on!(builder, DeleteSessionRequest, delete_session);
    let builder = on!(builder, SetSessionModeRequest, set_mode);
    let builder = on!(builder, SetSessionConfigOptionRequest, set_option);
    let builder =
        on!(builder, PromptRequest, |agent, it, responder, _cx| agent.prompt(it, responder));
    let builder = {
        let agent = Arc::clone(agent);
        builder.on_receive_notification(
            async move |cancel: CancelNotification, _| {
                // Without a prompt there is nothing to cancel, and no response to send.
                if let Some(session) = agent.find(&cancel.session_id.0) {
                    session.turn.cancel();
                }
                Ok(())
            },
            on_receive_notification!(),
        )
    };
    let closing = Arc::clone(agent);
    builder
        .on_close(async move |_| {
            closing.cancel_all();
            let _ = timeout(FINISH, closing.finished()).await;
            Ok(())
        })
        .connect_to(transport)
        .await
}
