//! Requests to an API server, and their answers as they arrive.

use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::BodyExt as _;
use kube::{
    Client,
    api::{ListParams, WatchParams},
    client::Body,
    core::Request,
};
use serde::Deserialize;
use tokio::time::timeout;

use super::{Patience, error::Failure};

/// No list may be longer, in bytes: some 10,000 nodes as large as nodes get.
const LONGEST_LIST: usize = 128 << 20;
/// No event may be longer: etcd takes no object of more than 1.5 MiB.
const LONGEST_EVENT: usize = 16 << 20;
/// No more is read of an answer that says why there is none.
const LONGEST_STATUS: usize = 64 << 10;

/// An API server.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) client: Client,
    pub(super) patience: Patience,
}

/// Events as a watch sends them, one a line.
pub(super) struct Lines {
    body: Body,
    buffer: BytesMut,
    /// So many of the buffer's bytes are known to hold no end of a line.
    searched: usize,
    pause: Duration,
}

/// Why the server says no.
#[derive(Deserialize)]
pub(super) struct Status {
    #[serde(default)]
    pub(super) code: u16,
    #[serde(default)]
    pub(super) message: String,
    #[serde(default)]
    details: Option<StatusDetails>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusDetails {
    #[serde(default)]
    retry_after_seconds: u64,
}

impl Server {
    /// Takes a list, or one page of it.
    pub(super) async fn list(&self, path: &str, list: &ListParams) -> Result<Bytes, Failure> {
        let request = Request::new(path)
            .list(list)
            .map_err(|_| Failure::Malformed("its token for more cannot be sent back"))?;
        let body = self.send(request).await?;
        read(body, LONGEST_LIST, self.patience.pause).await
    }

    /// Begins to watch what has changed since a version.
    pub(super) async fn watch(
        &self,
        path: &str,
        version: &str,
        seconds: u32,
    ) -> Result<Lines, Failure> {
        let watch = WatchParams::default().timeout(seconds);
        let request = Request::new(path)
            .watch(&watch, version)
            .map_err(|_| Failure::Malformed("its version cannot be sent back"))?;
        Ok(Lines {
            body: self.send(request).await?,
            buffer: BytesMut::new(),
            searched: 0,
            // It ends by itself before that.
            pause: Duration::from_secs(seconds.into()).saturating_add(self.patience.pause),
        })
    }

    async fn send(&self, request: http::Request<Vec<u8>>) -> Result<Body, Failure> {
        let after = self.patience.answer;
        let response = timeout(after, self.client.send(request.map(Body::from)))
            .await
            .map_err(|_| Failure::TimedOut { after })?
            .map_err(|error| Failure::Unanswered(Box::new(error)))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response.into_body());
        }
        let header = response.headers().get("retry-after");
        let seconds = header.and_then(|header| header.to_str().ok()?.parse().ok());
        // The answer's words are good to have, and no more.
        let said = read(response.into_body(), LONGEST_STATUS, after).await;
        let said = said
            .ok()
            .and_then(|said| serde_json::from_slice(&said).ok());
        let mut refused = Status::refused(
            said.unwrap_or(Status {
                code: status.as_u16(),
                message: status
                    .canonical_reason()
                    .unwrap_or("nothing more")
                    .to_owned(),
                details: None,
            }),
        );
        if let Failure::Refused {
            status: said,
            retry_after,
            ..
        } = &mut refused
        {
            *said = status.as_u16();
            *retry_after = seconds.map(Duration::from_secs).or(*retry_after);
        }
        Err(refused)
    }
}

impl Status {
    pub(super) fn refused(self) -> Failure {
        let seconds = self
            .details
            .map_or(0, |details| details.retry_after_seconds);
        Failure::Refused {
            status: self.code,
            message: self.message,
            retry_after: (seconds > 0).then(|| Duration::from_secs(seconds)),
        }
    }
}

impl Lines {
    /// The next line, without its end; `None` after the last. Cancelling it loses nothing.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = unsearched.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + end).freeze();
                self.buffer.advance(1);
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            match chunk(&mut self.body, self.pause).await? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(Failure::BrokeOff(None)),
            }
            if self.buffer.len() > LONGEST_EVENT {
                let most = LONGEST_EVENT;
                return Err(Failure::TooLong { most });
            }
        }
    }
}

async fn read(mut body: Body, most: usize, pause: Duration) -> Result<Bytes, Failure> {
    let mut all = BytesMut::new();
    while let Some(chunk) = chunk(&mut body, pause).await? {
        all.extend_from_slice(&chunk);
        if all.len() > most {
            return Err(Failure::TooLong { most });
        }
    }
    Ok(all.freeze())
}

/// Some more of an answer; `None` at its end.
async fn chunk(body: &mut Body, pause: Duration) -> Result<Option<Bytes>, Failure> {
    loop {
        let frame = timeout(pause, body.frame())
            .await
            .map_err(|_| Failure::TimedOut { after: pause })?;
        match frame {
            None => return Ok(None),
            Some(Err(error)) => return Err(Failure::BrokeOff(Some(Box::new(error)))),
            Some(Ok(frame)) => {
                // Trailers say nothing.
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
