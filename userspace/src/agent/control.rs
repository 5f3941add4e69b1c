//! The agent's socket: one JSON line in, one JSON line out.

use std::{
    fs, io,
    os::fd::AsFd as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream},
    sync::{Semaphore, mpsc, oneshot},
    time::timeout,
};

/// The longest request that is read.
const REQUEST_BYTES: u64 = 4096;
/// How long a client may take for its request: one that is idle must not hold up others.
const REQUEST_PATIENCE: Duration = Duration::from_millis(500);
/// How long the agent may take for the answer, and the client to read it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients served at once; a further one waits in the listen queue.
const CLIENTS: usize = 128;

/// What a client may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// The agent's status.
    Status,
    /// Take our flows, flags and entries off and mirror nothing, until it is told to resume.
    Pause,
    /// Steer and mirror again.
    Resume,
    /// What is known of nodes, by bridge: [`BridgeNodes`](super::node_bindings::BridgeNodes).
    Nodes,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    command: Command,
}

/// A command on its way to the driver, and where the answer goes: a JSON object, with `error` where
/// the command failed.
#[derive(Debug)]
pub struct Call {
    /// The command.
    pub command: Command,
    /// Where the answer goes.
    pub answer: oneshot::Sender<serde_json::Value>,
}

/// What went wrong between a client and the agent.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No agent listens.
    #[error("no agent answers on {path}: {source}; is `neighsteer agent` running with this state directory?", path = .path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Its socket is another user's.
    #[error("may not ask the agent on {path}: {source}; run this as root or as the agent's user", path = .path.display())]
    Denied {
        /// The socket.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The socket could not be made.
    #[error("cannot listen on {path}: {source}", path = .path.display())]
    Listen {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The connection broke.
    #[error("the agent's answer on {path} did not come whole: {source}", path = .path.display())]
    Exchange {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The agent says that it could not do it.
    #[error("the agent on {path} could not do it: {reason}", path = .path.display())]
    Refused {
        /// The socket.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The answer is not what this version reads.
    #[error("the agent on {path} answered {answer:?}: is it of another version?", path = .path.display())]
    Answer {
        /// The socket.
        path: PathBuf,
        /// What came.
        answer: String,
    },
}

/// The socket's path below the state directory.
#[must_use]
pub fn socket_path(state_directory: &Path) -> PathBuf {
    state_directory.join("agent.sock")
}

/// A listening control socket; its file goes when it is dropped.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl ControlSocket {
    /// Listens below `state_directory`; call it with the node lock held, since it takes over a
    /// socket file that a killed agent left.
    ///
    /// # Errors
    /// Where the socket cannot be made.
    pub fn listen(state_directory: &Path) -> Result<Self, ControlError> {
        let path = socket_path(state_directory);
        let error = |source| ControlError::Listen {
            path: path.clone(),
            source,
        };
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(error(source)),
            _ => {}
        }
        let listener = UnixListener::bind(&path).map_err(error)?;
        Ok(Self { listener, path })
    }

    /// Serves clients; hands each command to the driver through `calls`.
    pub async fn serve(self, calls: mpsc::Sender<Call>) {
        let places = Arc::new(Semaphore::new(CLIENTS));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let calls = calls.clone();
                    tokio::spawn(async move {
                        let _place = place;
                        if let Err(error) =
                            timeout(REQUEST_PATIENCE + PATIENCE, answer(stream, calls))
                                .await
                                .unwrap_or_else(|_| {
                                    Err(io::Error::new(
                                        io::ErrorKind::TimedOut,
                                        "the client took too long",
                                    ))
                                })
                        {
                            tracing::debug!(%error, "control client left without an answer");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, path = %self.path.display(), "control socket refused a client");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "control socket was gone already");
        }
    }
}

async fn answer(stream: UnixStream, calls: mpsc::Sender<Call>) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    let mut reader = BufReader::new(reader.take(REQUEST_BYTES));
    timeout(REQUEST_PATIENCE, reader.read_line(&mut line))
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no request came"))??;
    let value = match serde_json::from_str::<Request>(&line) {
        // To carry out later what was given up long ago would be a surprise.
        Ok(_) if has_gone(writer.as_ref())? => {
            return Err(io::Error::new(
                io::ErrorKind::BrokenPipe,
                "the client has gone",
            ));
        }
        Ok(Request { command }) => {
            let gone = || io::Error::new(io::ErrorKind::BrokenPipe, "the agent is stopping");
            let (answer, receiver) = oneshot::channel();
            calls
                .send(Call { command, answer })
                .await
                .map_err(|_| gone())?;
            receiver.await.map_err(|_| gone())?
        }
        Err(error) => serde_json::json!({ "error": error.to_string() }),
    };
    let mut text = serde_json::to_vec(&value)?;
    text.push(b'\n');
    writer.write_all(&text).await?;
    writer.shutdown().await
}

/// Whether the other end is closed; one that only writes no more still waits for its answer.
fn has_gone(stream: &UnixStream) -> io::Result<bool> {
    let mut polled = [PollFd::new(stream.as_fd(), PollFlags::empty())];
    poll(&mut polled, PollTimeout::ZERO)?;
    let events = polled.first().and_then(PollFd::revents);
    Ok(events.is_some_and(|events| events.contains(PollFlags::POLLHUP)))
}

/// Has the agent carry out a command; returns its answer.
///
/// # Errors
/// Where no agent answers, or not as this version expects, or it could not do it.
pub async fn request(
    state_directory: &Path,
    command: Command,
) -> Result<serde_json::Value, ControlError> {
    let path = socket_path(state_directory);
    let exchange = |source| ControlError::Exchange {
        path: path.clone(),
        source,
    };
    let mut stream = UnixStream::connect(&path).await.map_err(|source| {
        let path = path.clone();
        match source.kind() {
            io::ErrorKind::PermissionDenied => ControlError::Denied { path, source },
            _ => ControlError::Connect { path, source },
        }
    })?;
    let conversation = async {
        let mut request = serde_json::to_vec(&Request { command })?;
        request.push(b'\n');
        stream.write_all(&request).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    let answer = timeout(PATIENCE, conversation)
        .await
        .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in 5 s")))
        .map_err(exchange)?;
    match serde_json::from_str::<serde_json::Value>(&answer) {
        Ok(value) => match value.get("error").and_then(serde_json::Value::as_str) {
            Some(reason) => Err(ControlError::Refused {
                path,
                reason: reason.to_owned(),
            }),
            None => Ok(value),
        },
        Err(_) => Err(ControlError::Answer { path, answer }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_with_more_than_its_command_is_refused() {
        let read = |text| serde_json::from_str::<Request>(text);
        assert_eq!(
            read(r#"{"command":"pause"}"#).unwrap().command,
            Command::Pause
        );
        for wrong in [
            r#"{"command":"status","bridge":"br-ex"}"#,
            r#"{"command":"stop"}"#,
            "{}",
        ] {
            read(wrong).unwrap_err();
        }
    }

    #[tokio::test]
    async fn what_a_client_that_has_gone_had_asked_for_is_not_done() {
        let directory = tempfile::tempdir().unwrap();
        let socket = ControlSocket::listen(directory.path()).unwrap();
        let ask = async |command: &str| {
            let path = socket_path(directory.path());
            let mut stream = UnixStream::connect(path).await.unwrap();
            stream.write_all(command.as_bytes()).await.unwrap();
            stream
        };
        drop(ask("{\"command\":\"pause\"}\n").await);
        // One that writes no more, as `nc -U` at the end of its input, still waits for the answer.
        let mut waiting = ask("{\"command\":\"resume\"}\n").await;
        waiting.shutdown().await.unwrap();
        let (calls, mut receiver) = mpsc::channel::<Call>(2);
        let serving = tokio::spawn(socket.serve(calls));
        let first = receiver.recv().await.unwrap();
        assert_eq!(first.command, Command::Resume);
        first.answer.send(serde_json::json!({})).unwrap();
        let mut answer = String::new();
        waiting.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "{}\n");
        assert!(receiver.try_recv().is_err());
        serving.abort();
    }

    #[tokio::test]
    async fn idle_clients_do_not_hold_up_one_that_asks() {
        let directory = tempfile::tempdir().unwrap();
        let socket = ControlSocket::listen(directory.path()).unwrap();
        let (calls, mut receiver) = mpsc::channel::<Call>(1);
        let serving = tokio::spawn(socket.serve(calls));
        let answering = tokio::spawn(async move {
            let call = receiver.recv().await.unwrap();
            call.answer
                .send(serde_json::json!({ "paused": true }))
                .unwrap();
        });
        let mut idle = Vec::new();
        for _ in 0..CLIENTS {
            idle.push(
                UnixStream::connect(socket_path(directory.path()))
                    .await
                    .unwrap(),
            );
        }
        let answer = request(directory.path(), Command::Pause).await.unwrap();
        assert_eq!(answer["paused"], true);
        answering.await.unwrap();
        serving.abort();
    }
}
