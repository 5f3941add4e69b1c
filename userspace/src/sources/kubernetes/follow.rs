//! Follows all objects of one kind: a list, then watches, and a list again where a watch cannot go on.

use std::{borrow::Cow, collections::BTreeMap, marker::PhantomData, sync::Arc, time::Duration};

use kube::api::ListParams;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep},
};

use super::{
    Patience,
    access::Access,
    error::Failure,
    resource::Resource,
    server::{Server, Status},
};
use crate::sources::{feed::Publisher, text::with_causes};

/// A watch that says nothing and ends earlier than this was not meant.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);
/// After so many failures in a row, what a watch was to go on from is not trusted.
const LIST_ANEW: u32 = 5;
/// So many times in a row a server must say that what was there is gone.
const BELIEVED: u32 = 3;
/// Longer than this nobody waits because the server wants it.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Follows the objects of kind `R`.
pub(super) struct Follower<'a, R> {
    access: &'a Access,
    patience: Patience,
    publisher: &'a Publisher,
    server: Option<Server>,
    /// Up to where all is known; `None` = a list is wanted.
    version: Option<String>,
    /// Whether there was a list: the next one must not be older.
    was_listed: bool,
    /// How often in a row the server has said that there are none.
    denials: u32,
    /// Failures in a row.
    failures: u32,
    kind: PhantomData<R>,
}

/// A list as the API gives it; objects are read one by one.
#[derive(Deserialize)]
struct List<'a> {
    metadata: ListMetadata,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    r#continue: String,
}

/// An event of a watch.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl<'a, R: Resource> Follower<'a, R> {
    pub(super) const fn new(
        access: &'a Access,
        patience: Patience,
        publisher: &'a Publisher,
    ) -> Self {
        Self {
            access,
            patience,
            publisher,
            server: None,
            version: None,
            was_listed: false,
            denials: 0,
            failures: 0,
            kind: PhantomData,
        }
    }

    /// Never ends.
    pub(super) async fn run(mut self) {
        loop {
            let since = Instant::now();
            let Err(failure) = self.advance().await else {
                continue;
            };
            if since.elapsed() >= self.patience.backoff.longest {
                self.failures = 0;
            }
            if !failure.spares_client() {
                self.server = None;
            }
            let wait = if R::IS_OPTIONAL && self.version.is_none() && failure.is_absence() {
                self.absent(&failure)
            } else {
                self.failed(&failure)
            };
            sleep(wait).await;
        }
    }

    /// One list, or one watch to its end.
    async fn advance(&mut self) -> Result<(), Failure> {
        let server = self.server().await?;
        match self.version.clone() {
            None => self.list(&server).await,
            Some(version) => self.watch(&server, version).await,
        }
    }

    async fn server(&mut self) -> Result<Server, Failure> {
        if let Some(server) = &self.server {
            return Ok(server.clone());
        }
        let access = self.access.clone();
        let client = match spawn_blocking(move || access.client()).await {
            Ok(client) => client?,
            // Only what panics or is cancelled does not come back.
            Err(_) => return Err(Failure::Malformed("its client was not made")),
        };
        let patience = self.patience;
        Ok(self.server.insert(Server { client, patience }).clone())
    }

    async fn list(&mut self, server: &Server) -> Result<(), Failure> {
        // The server's cache is good enough to start from, and the server likes it better. What comes
        // later must not be older than what was known.
        let mut params = if self.was_listed {
            ListParams::default().limit(self.patience.page)
        } else {
            ListParams {
                resource_version: Some("0".to_owned()),
                ..ListParams::default()
            }
        };
        let mut all = BTreeMap::new();
        let version = loop {
            self.publisher.count(R::KIND, |status| {
                status.lists = status.lists.saturating_add(1);
            });
            let bytes = server.list(R::PATH, &params).await?;
            let list: List<'_> = serde_json::from_slice(&bytes).map_err(Failure::NotJson)?;
            if list.metadata.resource_version.is_empty() {
                return Err(Failure::Malformed("a list without resourceVersion"));
            }
            for item in list.items.into_iter().flatten() {
                if let Some((name, object)) = self.read(item) {
                    all.insert(name, object);
                }
            }
            if list.metadata.r#continue.is_empty() {
                break list.metadata.resource_version;
            }
            params.resource_version = None;
            params.continue_token = Some(list.metadata.r#continue);
        };
        let known = self.publisher.known(R::KIND);
        if R::IS_OPTIONAL && all.is_empty() && known > 0 {
            self.denials += 1;
            if self.denials < BELIEVED {
                return Err(Failure::Emptied { known });
            }
        }
        R::replace(self.publisher, all)?;
        self.denials = 0;
        self.was_listed = true;
        self.version = Some(version);
        self.publisher.current(R::KIND);
        Ok(())
    }

    async fn watch(&mut self, server: &Server, version: String) -> Result<(), Failure> {
        self.publisher.count(R::KIND, |status| {
            status.watches = status.watches.saturating_add(1);
        });
        let longest = self.patience.watch.as_secs().clamp(1, 290);
        // Those who began at one moment do not come back at one moment.
        let seconds = longest - fastrand::u64(0..=longest / 5);
        let seconds = u32::try_from(seconds).unwrap_or(290);
        let since = Instant::now();
        let mut lines = server.watch(R::PATH, &version, seconds).await?;
        self.publisher.current(R::KIND);
        while let Some(line) = lines.next().await? {
            self.take(&line)?;
        }
        // It may end whenever the server likes, but not at once time and again.
        if since.elapsed() < SHORTEST_WATCH {
            return Err(Failure::EndedAtOnce);
        }
        self.failures = 0;
        Ok(())
    }

    /// Takes one event.
    fn take(&mut self, line: &[u8]) -> Result<(), Failure> {
        let event: Event<'_> = serde_json::from_slice(line).map_err(Failure::NotJson)?;
        if event.r#type == "ERROR" {
            let status: Status =
                serde_json::from_str(event.object.get()).map_err(Failure::NotJson)?;
            return Err(status.refused());
        }
        let object: Value = serde_json::from_str(event.object.get()).map_err(Failure::NotJson)?;
        let version = object
            .pointer("/metadata/resourceVersion")
            .and_then(Value::as_str)
            .filter(|version| !version.is_empty())
            .ok_or(Failure::Malformed("an event without resourceVersion"))?;
        match &*event.r#type {
            "BOOKMARK" => {}
            "ADDED" | "MODIFIED" => self.set(&object)?,
            "DELETED" => {
                if let Some(name) = object.pointer("/metadata/name").and_then(Value::as_str) {
                    self.remove(&Arc::from(name))?;
                }
            }
            _ => return Err(Failure::Malformed("an event of no known type")),
        }
        self.version = Some(version.to_owned());
        Ok(())
    }

    fn set(&self, object: &Value) -> Result<(), Failure> {
        match R::read(object) {
            Ok((name, object)) => R::set(self.publisher, &name, Some(object))?,
            Err(error) => self.publisher.refused(R::KIND, refusal::<R>(&error)),
        }
        Ok(())
    }

    fn remove(&mut self, name: &Arc<str>) -> Result<(), Failure> {
        if let Err(error) = R::set(self.publisher, name, None) {
            // That was the last node: only a list can be trusted now.
            self.version = None;
            return Err(error.into());
        }
        Ok(())
    }

    fn read(&self, item: &RawValue) -> Option<(Arc<str>, R)> {
        let read = serde_json::from_str::<Value>(item.get())
            .map_err(|error| refusal::<R>(&error))
            .and_then(|object| R::read(&object).map_err(|error| refusal::<R>(&error)));
        read.map_err(|error| self.publisher.refused(R::KIND, error))
            .ok()
    }

    /// Says that the server does not have the kind; returns how long to leave it at that. Where there
    /// were objects, the server must say it several times.
    fn absent(&mut self, failure: &Failure) -> Duration {
        self.denials = self.denials.saturating_add(1);
        self.failures = 0;
        let text = with_causes(failure);
        let known = self.publisher.known(R::KIND);
        if known == 0 || self.denials >= BELIEVED {
            // Fails only where there must be some.
            let _replaced = R::replace(self.publisher, BTreeMap::new());
            self.publisher.absent(R::KIND, text);
        } else {
            let text = format!("{text} ({known} objects are known and kept)");
            self.publisher.failed(&[R::KIND], text);
        }
        self.patience.absent.mul_f64(1.0 - fastrand::f64() / 5.0)
    }

    /// Says what went wrong; returns how long to wait.
    fn failed(&mut self, failure: &Failure) -> Duration {
        self.failures = self.failures.saturating_add(1);
        if failure.is_expired() || self.failures >= LIST_ANEW {
            self.version = None;
        }
        if failure.is_expired() {
            self.publisher.count(R::KIND, |status| {
                status.expired = status.expired.saturating_add(1);
            });
            // As it must be now and then: a list follows, and all is well.
            if self.failures == 1 {
                return Duration::ZERO;
            }
        }
        self.publisher.failed(&[R::KIND], with_causes(failure));
        let wait = self.patience.backoff.wait(self.failures, fastrand::f64());
        let wanted = failure.retry_after().unwrap_or_default();
        wait.max(wanted.min(LONGEST_RETRY_AFTER))
    }
}

fn refusal<R: Resource>(error: &dyn std::error::Error) -> String {
    format!("a {} of the API server is left out: {error}", R::KIND)
}
