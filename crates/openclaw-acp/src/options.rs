//! What the client can choose for a session: the model, and how strict it is about tool calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    ConfigOptionUpdate, CurrentModeUpdate, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelectOption, SessionMode, SessionModeState, SessionUpdate,
};
use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::models::{ListParams, ModelChoice};
use openclaw_protocol::rpc;
use openclaw_protocol::sessions::{PatchParams, PermissionMode, Row};

use crate::client::SessionClient;
use crate::error::invalid_params;
use crate::gateway::GatewaySession;

/// The timeout of a request.
const ANSWER: Duration = Duration::from_secs(30);
/// The ids of the options.
const MODE: &str = "mode";
const MODEL: &str = "model";
/// The id of the offline model.
const OFFLINE: &str = "offline";
/// Maximum characters of a model in an error.
const MAX_SHOWN: usize = 100;

/// How strict a session is about tool calls: only modes that allow no more than the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    /// As configured.
    #[default]
    Default,
    Guarded,
    ReadOnly,
}

impl Mode {
    const ALL: [Self; 3] = [Self::Default, Self::Guarded, Self::ReadOnly];

    const fn id(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Guarded => "guarded",
            Self::ReadOnly => "read-only",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Default => "Default",
            Self::Guarded => "Guarded",
            Self::ReadOnly => "Read-only",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::Default => "Ask before changes, as configured",
            Self::Guarded => "Ask before every change, whatever was allowed before",
            Self::ReadOnly => "Refuse tools that may change something",
        }
    }

    const fn permission(self) -> Option<PermissionMode> {
        match self {
            Self::Default => None,
            Self::Guarded => Some(PermissionMode::Guarded),
            Self::ReadOnly => Some(PermissionMode::ReadOnly),
        }
    }

    fn with_permission(permission: Option<PermissionMode>) -> Self {
        Self::ALL.into_iter().find(|mode| mode.permission() == permission).unwrap_or_default()
    }

    fn find(id: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|mode| mode.id() == id);
        found.ok_or_else(|| invalid_params("unknown mode; use `default`, `guarded` or `read-only`"))
    }
}

/// The options of a session.
pub(crate) struct SessionOptions {
    gateway: Arc<GatewaySession>,
    client: Arc<SessionClient>,
    chosen: Mutex<ChosenOptions>,
}

#[derive(Debug, Clone, Default)]
struct ChosenOptions {
    mode: Mode,
    /// The chosen model; `None` for the first one.
    model: Option<String>,
    /// Empty if the gateway cannot list them.
    models: Vec<ModelChoice>,
}

impl SessionOptions {
    pub(crate) fn new(gateway: Arc<GatewaySession>, client: Arc<SessionClient>) -> Self {
        Self { gateway, client, chosen: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, ChosenOptions> {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the model is the offline one. Without a list, it may be.
    pub(crate) fn is_offline(&self) -> bool {
        self.lock().models.first().is_none_or(|model| model.id == OFFLINE)
    }

    /// Whether every change needs an approval, whatever was allowed before.
    pub(crate) fn is_guarded(&self) -> bool {
        self.lock().mode == Mode::Guarded
    }

    /// Learns the options when the session is opened. `row` is the stored session.
    pub(crate) async fn learn(&self, row: Option<&Row>) {
        let agent_id = Some(self.gateway.agent.clone());
        let params = ListParams { agent_id, ..ListParams::default() };
        let listed = self.gateway.ask_within::<rpc::ModelsList>(ANSWER, params).await;
        let models = listed.map(|listed| listed.models).unwrap_or_default();
        let mode = Mode::with_permission(row.and_then(|row| row.permission_mode));
        let model = row.and_then(|row| row.chosen_model().map(ToOwned::to_owned));
        *self.lock() = ChosenOptions { mode, model, models };
    }

    pub(crate) fn modes(&self) -> SessionModeState {
        let modes = Mode::ALL.into_iter().map(|mode| {
            SessionMode::new(mode.id(), mode.name()).description(mode.description().to_owned())
        });
        SessionModeState::new(self.lock().mode.id(), modes.collect())
    }

    pub(crate) fn list(&self) -> Vec<SessionConfigOption> {
        let ChosenOptions { mode, model, models } = self.lock().clone();
        let modes: Vec<_> = Mode::ALL
            .into_iter()
            .map(|mode| {
                SessionConfigSelectOption::new(mode.id(), mode.name())
                    .description(mode.description().to_owned())
            })
            .collect();
        let mut options = vec![
            SessionConfigOption::select(MODE, "Mode", mode.id(), modes)
                .description("How strict the session is about tool calls".to_owned())
                .category(SessionConfigOptionCategory::Mode),
        ];
        let chosen = models.iter().find(|it| Some(&it.id) == model.as_ref()).or(models.first());
        if let Some(chosen) = chosen {
            let all: Vec<_> = models
                .iter()
                .map(|it| {
                    SessionConfigSelectOption::new(it.id.clone(), it.name.clone())
                        .description(it.provider.clone())
                })
                .collect();
            options.push(
                SessionConfigOption::select(MODEL, "Model", chosen.id.clone(), all)
                    .category(SessionConfigOptionCategory::Model),
            );
        }
        options
    }

    /// Sends the options to the client: they were changed in another way.
    pub(crate) fn show(&self) {
        let update = ConfigOptionUpdate::new(self.list());
        self.client.send(SessionUpdate::ConfigOptionUpdate(update));
    }

    /// Sets an option, from the next prompt on.
    pub(crate) async fn set(&self, id: &str, value: &str) -> Result<(), Error> {
        match id {
            MODE => {
                self.set_mode(value).await?;
                // For clients that show the mode, but not the options.
                let update = CurrentModeUpdate::new(Mode::find(value)?.id());
                self.client.send(SessionUpdate::CurrentModeUpdate(update));
                Ok(())
            }
            MODEL => self.set_model(value).await,
            _ => Err(invalid_params("unknown option; use `mode` or `model`")),
        }
    }

    /// Sets the mode, from the next prompt on.
    pub(crate) async fn set_mode(&self, id: &str) -> Result<(), Error> {
        let mode = Mode::find(id)?;
        let permission_mode = Some(mode.permission());
        self.patch(PatchParams { permission_mode, ..PatchParams::default() }).await?;
        self.lock().mode = mode;
        Ok(())
    }

    async fn set_model(&self, id: &str) -> Result<(), Error> {
        // The gateway accepts more models than it lists; the client could not show them.
        let known = self.lock().models.clone();
        if !known.iter().any(|model| model.id == id) {
            let id = clean_line(Untrusted::new(id), MAX_SHOWN);
            let known: Vec<_> = known.into_iter().map(|model| model.id).collect();
            let known = known.join(", ");
            return Err(invalid_params(format!("unknown model `{id}`; configured: {known}")));
        }
        let model = Some(id.to_owned());
        self.patch(PatchParams { model: Some(model.clone()), ..PatchParams::default() }).await?;
        self.lock().model = model;
        Ok(())
    }

    async fn patch(&self, patch: PatchParams) -> Result<(), Error> {
        let params = PatchParams { key: self.gateway.key.clone(), ..patch };
        self.gateway.ask_within::<rpc::SessionsPatch>(ANSWER, params).await.map(drop)
    }
}
