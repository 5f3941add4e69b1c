//! What the server answers.

use std::{io, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader},
    time::{Instant, sleep, sleep_until},
};

use super::{
    Fault, Recorded, Shared, Verb,
    http::{Request, chunk, head},
    store::{NODES, Page, UPLINK_STATES},
};

/// A client, to its end or that of the connections of this epoch.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, shared: &Shared) {
    let epoch = shared.state().epoch;
    let _counted = Counted::new(shared, |state| &mut state.connections);
    let mut changes = shared.changes.subscribe();
    let is_cut =
        async { while shared.state().epoch == epoch && changes.changed().await.is_ok() {} };
    let mut stream = BufReader::new(stream);
    let served = async {
        while let Some(request) = Request::read(&mut stream).await? {
            if !answer(&request, stream.get_mut(), shared).await? {
                break;
            }
        }
        io::Result::Ok(())
    };
    tokio::select! {
        // Where it is cut, nothing is said to the client: that is what breaking off means.
        () = is_cut => {}
        _gone = served => {}
    }
}

/// Keeps count of what goes on.
struct Counted<'a> {
    shared: &'a Shared,
    which: fn(&mut super::State) -> &mut usize,
}

impl<'a> Counted<'a> {
    fn new(shared: &'a Shared, which: fn(&mut super::State) -> &mut usize) -> Self {
        *which(&mut shared.state()) += 1;
        Self { shared, which }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        *(self.which)(&mut self.shared.state()) -= 1;
    }
}

/// Whether the connection may go on.
async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    request: &Request,
    stream: &mut S,
    shared: &Shared,
) -> io::Result<bool> {
    let verb = match request.parameter("watch").as_deref() {
        Some("true" | "1") => Verb::Watch,
        _ => Verb::List,
    };
    let (fault, status) = {
        let mut state = shared.state();
        let wanted = |(path, of, _): &(&str, Verb, Fault)| *path == request.path && *of == verb;
        let position = state.faults.iter().position(wanted);
        let fault = position.map(|position| state.faults.remove(position).2);
        let given = request.headers.get("authorization");
        let status = if given != Some(&format!("Bearer {}", state.token)) {
            401
        } else if request.method != "GET" {
            405
        } else if ![NODES, UPLINK_STATES].contains(&&*request.path)
            || !state.store.serves(&request.path)
        {
            404
        } else {
            match fault {
                Some(Fault::Status(status)) => status,
                Some(Fault::Close | Fault::Silence) => 0,
                _ => 200,
            }
        };
        state.recorded.push(Recorded {
            method: request.method.clone(),
            path: request.path.clone(),
            query: request.query.clone(),
            status,
        });
        (fault, status)
    };
    match (status, fault) {
        (0, Some(Fault::Silence)) => gone(stream).await,
        (0, _) => Ok(false),
        (200, fault) if verb == Verb::Watch => watch(request, stream, shared, fault).await,
        (200, fault) => list(request, stream, shared, fault).await,
        (status, _) => {
            let said = failure(status).to_string();
            head(stream, status, Some(said.len())).await?;
            stream.write_all(said.as_bytes()).await?;
            stream.flush().await?;
            Ok(true)
        }
    }
}

async fn list<S: AsyncRead + AsyncWrite + Unpin>(
    request: &Request,
    stream: &mut S,
    shared: &Shared,
    fault: Option<Fault>,
) -> io::Result<bool> {
    let limit = request
        .parameter("limit")
        .and_then(|limit| limit.parse().ok());
    let after = request.parameter("continue");
    let page = shared
        .state()
        .store
        .page(&request.path, limit, after.as_deref());
    let (status, mut body) = match page {
        Page::Found(list) => (200, list),
        Page::Expired => (410, failure(410)),
    };
    if fault == Some(Fault::Empty) {
        body["items"] = Value::Null;
        body["metadata"]["continue"] = Value::Null;
        body["metadata"]
            .as_object_mut()
            .map(|metadata| metadata.remove("continue"));
    }
    let body = match &fault {
        Some(Fault::Say(body)) => body.clone(),
        _ => body.to_string(),
    };
    let body = body.as_bytes();
    head(stream, status, Some(body.len())).await?;
    match fault {
        Some(Fault::Truncate) => {
            stream.write_all(&body[..body.len() / 2]).await?;
            stream.flush().await?;
            return Ok(false);
        }
        Some(Fault::Trickle(size)) => {
            for piece in body.chunks(size) {
                stream.write_all(piece).await?;
                stream.flush().await?;
                // Or the kernel puts the pieces together again.
                sleep(Duration::from_millis(1)).await;
            }
        }
        _ => stream.write_all(body).await?,
    }
    stream.flush().await?;
    Ok(true)
}

async fn watch<S: AsyncRead + AsyncWrite + Unpin>(
    request: &Request,
    stream: &mut S,
    shared: &Shared,
    fault: Option<Fault>,
) -> io::Result<bool> {
    let number = |name| {
        request
            .parameter(name)
            .and_then(|value| value.parse::<u64>().ok())
    };
    let mut version = number("resourceVersion").unwrap_or(0);
    let seconds = number("timeoutSeconds").unwrap_or(1800);
    let end = Instant::now() + Duration::from_secs(seconds);
    let wants_bookmarks = request.parameter("allowWatchBookmarks").as_deref() == Some("true");
    let mut changes = shared.changes.subscribe();
    let mut bookmarks = shared.state().store.bookmarks();
    head(stream, 200, None).await?;
    let _counted = Counted::new(shared, |state| &mut state.watches);
    if fault == Some(Fault::Mute) {
        return gone(stream).await;
    }
    if let Some(Fault::Say(line)) = &fault {
        chunk(stream, format!("{line}\n").as_bytes()).await?;
    }
    loop {
        changes.borrow_and_update();
        let (events, is_served) = {
            let state = shared.state();
            let mut events = state.store.since(&request.path, version);
            if state.store.is_forgotten(version) {
                events = vec![(version, json!({"type": "ERROR", "object": failure(410)}))];
            }
            while wants_bookmarks && bookmarks < state.store.bookmarks() {
                events.push(state.store.bookmark_event(bookmarks, &request.path));
                bookmarks += 1;
            }
            (events, state.store.serves(&request.path))
        };
        for (of, event) in events {
            let line = format!("{event}\n");
            let line = line.as_bytes();
            if fault == Some(Fault::Truncate) {
                chunk(stream, &line[..line.len() / 2]).await?;
                return Ok(false);
            }
            match fault {
                Some(Fault::Trickle(size)) => {
                    for piece in line.chunks(size) {
                        chunk(stream, piece).await?;
                        // Or the kernel puts the pieces together again.
                        sleep(Duration::from_millis(1)).await;
                    }
                }
                _ => chunk(stream, line).await?,
            }
            version = version.max(of);
            if event["type"] == "ERROR" {
                chunk(stream, b"").await?;
                return Ok(true);
            }
        }
        if !is_served {
            chunk(stream, b"").await?;
            return Ok(true);
        }
        let mut byte = [0];
        tokio::select! {
            changed = changes.changed() => if changed.is_err() {
                return Ok(false);
            },
            () = sleep_until(end) => {
                chunk(stream, b"").await?;
                return Ok(true);
            }
            // The client says nothing while it watches: it is gone.
            _gone = stream.read(&mut byte) => return Ok(false),
        }
    }
}

/// Waits until the client goes.
async fn gone<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<bool> {
    let mut byte = [0];
    while stream.read(&mut byte).await? > 0 {}
    Ok(false)
}

/// Why there is no answer, as the API puts it.
fn failure(code: u16) -> Value {
    let (reason, message) = match code {
        401 => ("Unauthorized", "Unauthorized"),
        403 => (
            "Forbidden",
            "forbidden: the user cannot list this at the cluster scope",
        ),
        404 => (
            "NotFound",
            "the server could not find the requested resource",
        ),
        410 => ("Expired", "too old resource version"),
        429 => (
            "TooManyRequests",
            "the server has received too many requests",
        ),
        _ => ("InternalError", "an error on the server"),
    };
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    })
}
