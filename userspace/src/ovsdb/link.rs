//! A connection to a server that is fit for it, for as long as it is.

use std::time::Duration;

use bytes::Bytes;

use super::{
    client::Options,
    connection::Connection,
    error::SessionError,
    remote::{ConnectError, Remote},
    served::{self, Demands, Newest, Served, concerns_server},
    wire::message::{Incoming, ServerError, write_params},
};

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To follow rows: the server must not be behind.
    Monitor,
    /// To send transactions only.
    Write,
}

/// A connection together with what its server says of itself.
pub(crate) struct Link {
    connection: Connection,
    /// `None` for a server that says nothing of itself (before OVS 2.9).
    served: Option<Served>,
}

impl Link {
    /// Connects, and asks the server what it is.
    ///
    /// # Errors
    /// When the connection could not be made, has ended or must, or the server is of no use now.
    pub(crate) async fn open(
        remote: &Remote,
        options: &Options,
        newest: Newest,
        purpose: Purpose,
    ) -> Result<Self, SessionError> {
        let mut link = Self {
            connection: connect(remote, options).await?,
            served: None,
        };
        let schema = match link
            .call("get_schema", &write_params(&[served::DATABASE]))
            .await?
        {
            Ok(schema) => schema,
            Err(error) => {
                tracing::debug!(%remote, %error, "the server says nothing of itself");
                return Ok(link);
            }
        };
        let demands = Demands {
            remote: remote.clone(),
            database: options.database.clone(),
            leader_only: options.leader_only,
            index: purpose == Purpose::Monitor,
        };
        let mut served = Served::new(&schema, demands, newest)?;
        // Then the server cancels monitors where it would end the connection otherwise.
        link.connection.request("set_db_change_aware", b"[true]");
        match link
            .call("monitor_cond_since", &served.monitor_params())
            .await?
        {
            Ok(reply) => served.reply(&reply)?,
            Err(error) => {
                return Err(SessionError::Refused {
                    method: "monitor_cond_since",
                    database: served::DATABASE.to_owned(),
                    error,
                });
            }
        }
        link.served = Some(served);
        Ok(link)
    }

    /// Queues a request and returns its id; it is sent while [`Link::next`] is awaited.
    pub(crate) fn request(&mut self, method: &str, params: &[u8]) -> u64 {
        self.connection.request(method, params)
    }

    /// The next message that is about neither the connection nor the server. Cancel-safe.
    ///
    /// # Errors
    /// When the connection has ended or must, or the server has ceased to be of use.
    pub(crate) async fn next(&mut self) -> Result<Incoming, SessionError> {
        loop {
            let message = self.connection.next().await?;
            if let Incoming::Notification { method, params } = &message
                && method == "update3"
                && concerns_server(params)
                && let Some(served) = &mut self.served
            {
                served.update(params)?;
                continue;
            }
            return Ok(message);
        }
    }

    /// Sends a request and waits for its answer; only for a connection with nothing else in
    /// flight.
    ///
    /// # Errors
    /// When the connection has ended or must.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        params: &[u8],
    ) -> Result<Result<Bytes, ServerError>, SessionError> {
        let awaited = self.request(method, params);
        loop {
            match self.next().await? {
                Incoming::Reply { id, result } if id == awaited => return Ok(result),
                other => tracing::debug!(?other, "message while waiting for a reply"),
            }
        }
    }

    /// The newest place in the cluster's log that was seen so far.
    pub(crate) fn newest(&self) -> Newest {
        self.served.as_ref().map(Served::newest).unwrap_or_default()
    }
}

/// Connects, and nothing more.
async fn connect(remote: &Remote, options: &Options) -> Result<Connection, ConnectError> {
    let stream = tokio::time::timeout(
        options.connect_timeout,
        remote.connect(options.tls.as_ref()),
    )
    .await
    .map_err(|_| ConnectError::TimedOut {
        remote: remote.clone(),
        after: options.connect_timeout,
    })??;
    Ok(Connection::new(
        stream,
        options.max_message_bytes,
        probe_interval(options, remote),
        remote.is_tls(),
    ))
}

/// How long a silent server is trusted.
fn probe_interval(options: &Options, remote: &Remote) -> Option<Duration> {
    let interval = options.probe_interval.unwrap_or(if remote.is_local() {
        Options::LOCAL_PROBE_INTERVAL
    } else {
        Options::PROBE_INTERVAL
    });
    (!interval.is_zero()).then_some(interval)
}
