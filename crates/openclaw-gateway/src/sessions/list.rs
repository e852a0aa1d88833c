//! Finds, lists and describes sessions.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use openclaw_protocol::sessions::{
    DescribeParams, DescribeResult, ListParams, ListResult, ResolveParams, ResolveResult,
};
use openclaw_protocol::{ErrorShape, keys};
use openclaw_sessions::{ListFilter, MAX_LISTED, Session};

use super::previews::Previews;
use super::row::session_id;
use super::{Sessions, store_error};
use crate::clock::now_ms;

/// Default number of sessions listed.
const USUAL: usize = 100;

impl Sessions {
    pub(crate) async fn list(&self, params: ListParams) -> Result<ListResult, ErrorShape> {
        let number = |it: Option<u64>| it.and_then(|it| usize::try_from(it).ok());
        let limit = number(params.limit).unwrap_or(USUAL).clamp(1, MAX_LISTED);
        let offset = number(params.offset).unwrap_or(0);
        // A match may be far down the list.
        let is_filtered = params.search.is_some() || params.active_minutes.is_some();
        let needed = if is_filtered { MAX_LISTED } else { limit.saturating_add(offset) };
        let filter =
            ListFilter { agent: params.agent_id, limit: needed.min(MAX_LISTED), before: None };
        let sessions = self.store.list(filter).await.map_err(store_error)?;
        let since = params.active_minutes.map(|minutes| {
            let ago = Duration::from_secs(minutes.saturating_mul(60));
            SystemTime::now().checked_sub(ago).unwrap_or(UNIX_EPOCH)
        });
        let words =
            params.search.map(|words| words.to_lowercase()).filter(|words| !words.is_empty());
        let mut found = Vec::new();
        let recent = |session: &&Session| since.is_none_or(|since| session.updated_at >= since);
        for session in sessions.iter().filter(recent) {
            if found.len() == limit.saturating_add(offset) {
                break;
            }
            let is_wanted = match &words {
                Some(words) => self.contains(session, words).await,
                None => true,
            };
            if is_wanted {
                found.push(session);
            }
        }
        let mut rows = Vec::new();
        for session in found.into_iter().skip(offset) {
            rows.push(self.row(session).await);
        }
        let previews = Previews::new(params.include_derived_titles, params.include_last_message);
        for row in &mut rows {
            previews.add(&*self.store, row).await;
        }
        Ok(ListResult {
            ts: now_ms(),
            path: self.file.display().to_string(),
            count: rows.len() as u64,
            defaults: self.defaults().await,
            sessions: rows,
        })
    }

    /// Whether the key, the title or the first message of a session contains these words, in lower case.
    async fn contains(&self, session: &Session, words: &str) -> bool {
        let has = |text: &str| text.to_lowercase().contains(words);
        if has(session.key.as_str()) || session.title.as_deref().is_some_and(has) {
            return true;
        }
        let first = Previews::first_text(&*self.store, &session.key).await;
        first.is_some_and(|text| has(&text))
    }

    pub(crate) async fn describe(
        &self,
        params: DescribeParams,
    ) -> Result<DescribeResult, ErrorShape> {
        let key = self.key(&params.key, None)?;
        let session = self.store.get(&key).await.map_err(store_error)?;
        let mut session = match session {
            Some(session) => Some(self.row(&session).await),
            None => None,
        };
        let previews = Previews::new(params.include_derived_titles, params.include_last_message);
        if let Some(row) = &mut session {
            previews.add(&*self.store, row).await;
        }
        Ok(DescribeResult { session })
    }

    /// Finds a session by its key, its id or its title.
    pub(crate) async fn resolve(&self, params: ResolveParams) -> Result<ResolveResult, ErrorShape> {
        let found = if let Some(key) = &params.key {
            let key = self.key(key, params.agent_id.as_deref())?;
            self.store.get(&key).await.map_err(store_error)?
        } else {
            let filter = ListFilter { agent: params.agent_id, limit: MAX_LISTED, before: None };
            let sessions = self.store.list(filter).await.map_err(store_error)?;
            let is_meant = |session: &Session| {
                params.session_id.as_ref().is_some_and(|id| {
                    *id == session_id(session)
                        || session.key.as_str() == keys::explicit(&session.agent, id)
                }) || (params.label.is_some() && params.label == session.title)
            };
            sessions.into_iter().find(is_meant)
        };
        Ok(match found {
            Some(Session { key, agent, title, .. }) => ResolveResult {
                ok: true,
                key: Some(key.to_string()),
                agent_id: Some(agent),
                display_name: title,
            },
            None => ResolveResult::default(),
        })
    }
}
