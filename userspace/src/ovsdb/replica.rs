//! What is known of a database across connections, and how a connection brings it up to date.

use bytes::Bytes;

use super::{
    cache::{Cache, Change},
    client::Options,
    error::SessionError,
    link::{Link, Purpose},
    remote::Remote,
    served::Newest,
    value::Uuid,
    wire::{
        message::write_params,
        monitor::{MonitorCondition, Requests},
        schema,
        updates::Decoder,
    },
};

/// The monitor's name on its connection.
pub(crate) const MONITOR: &str = "monitor";

/// Conditions, in the order of the request's tables, with the number of the wish for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) tables: Vec<MonitorCondition>,
    pub(crate) generation: u64,
}

/// The rows with what is needed to go on from them.
#[derive(Debug, Default)]
pub(crate) struct Replica {
    pub(crate) cache: Cache,
    /// The newest transaction in the cache; nil where a snapshot is needed.
    pub(crate) last_transaction: Uuid,
    /// Those that chose the rows.
    pub(crate) conditions: Conditions,
    /// How far the cluster's log was seen to reach; a member that is behind is of no use.
    pub(crate) newest: Newest,
}

impl Replica {
    /// Connects and brings the cache up to date; `changes` receives what that changed, also where
    /// it fails half-way.
    ///
    /// # Errors
    /// When the connection could not be made, has ended or must.
    pub(crate) async fn establish(
        &mut self,
        remote: &Remote,
        options: &Options,
        wanted: Conditions,
        changes: &mut Vec<Change>,
    ) -> Result<Link, SessionError> {
        let mut link = Link::open(remote, options, self.newest, Purpose::Monitor).await?;
        let refused = |method, error| SessionError::Refused {
            method,
            database: options.database.to_string(),
            error,
        };
        let schema = link
            .call("get_schema", &write_params(&[&options.database]))
            .await?
            .map_err(|error| refused("get_schema", error))?;
        let layouts = schema::layouts(&schema, &options.database, &options.monitor)?;
        drop(schema);
        // Differences are only good for rows of the same columns, chosen by the same conditions.
        if self.cache.set_layouts(layouts) || self.conditions.tables != wanted.tables {
            self.last_transaction = Uuid::NIL;
        }
        let requests = Requests {
            layouts: self.cache.layouts(),
            conditions: &wanted.tables,
        };
        let params = write_params(&(&options.database, MONITOR, requests, self.last_transaction));
        let result = link
            .call("monitor_cond_since", &params)
            .await?
            .map_err(|error| refused("monitor_cond_since", error))?;
        let (layouts, interner) = self.cache.decoder_parts();
        let reply = Decoder::new(layouts, interner)
            .monitor_reply(&result)
            .map_err(|source| SessionError::Update {
                database: options.database.to_string(),
                source,
            })?;
        drop(result);
        self.conditions = wanted;
        // A failure leaves a cache of which no transaction can be named.
        self.last_transaction = Uuid::NIL;
        if reply.found {
            self.cache.apply(reply.updates, changes)?;
        } else {
            self.cache.replace(reply.updates, changes)?;
        }
        self.last_transaction = reply.last_transaction;
        Ok(link)
    }

    /// Applies an `update3`; `changes` receives what that changed, also where it fails half-way.
    ///
    /// # Errors
    /// Where it cannot be read or does not fit; a snapshot is needed then.
    pub(crate) fn update(
        &mut self,
        params: Bytes,
        options: &Options,
        changes: &mut Vec<Change>,
    ) -> Result<(), SessionError> {
        let last_transaction = std::mem::replace(&mut self.last_transaction, Uuid::NIL);
        let (layouts, interner) = self.cache.decoder_parts();
        let update = Decoder::new(layouts, interner)
            .update3(&params, MONITOR)
            .map_err(|source| SessionError::Update {
                database: options.database.to_string(),
                source,
            })?;
        // The text of many rows is as large as they are: it goes before they are copied about.
        drop(params);
        let Some(update) = update else {
            self.last_transaction = last_transaction;
            return Ok(());
        };
        self.cache.apply(update.updates, changes)?;
        self.last_transaction = update.last_transaction;
        Ok(())
    }
}
