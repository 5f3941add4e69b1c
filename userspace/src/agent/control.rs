//! The agent's socket: one JSON line in, one JSON line out.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream},
    sync::{Semaphore, mpsc, oneshot},
    time::timeout,
};

use super::status::AgentStatus;

/// The longest request that is read.
const REQUEST_BYTES: u64 = 4096;
/// How long a client may take for its request, and we for the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients served at once; a further one waits in the listen queue.
const CLIENTS: usize = 16;

/// What a client may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The agent's status.
    Status,
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

    /// Serves clients; asks the driver through `status` for each.
    pub async fn serve(self, status: mpsc::Sender<oneshot::Sender<AgentStatus>>) {
        let places = Arc::new(Semaphore::new(CLIENTS));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let status = status.clone();
                    tokio::spawn(async move {
                        let _place = place;
                        if let Err(error) = timeout(PATIENCE, answer(stream, status))
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

async fn answer(
    stream: UnixStream,
    status: mpsc::Sender<oneshot::Sender<AgentStatus>>,
) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    BufReader::new(reader.take(REQUEST_BYTES))
        .read_line(&mut line)
        .await?;
    let mut text = match serde_json::from_str::<Request>(&line) {
        Ok(Request::Status) => {
            let gone = || io::Error::new(io::ErrorKind::BrokenPipe, "the agent is stopping");
            let (sender, receiver) = oneshot::channel();
            status.send(sender).await.map_err(|_| gone())?;
            serde_json::to_vec(&receiver.await.map_err(|_| gone())?)?
        }
        Err(error) => serde_json::to_vec(&serde_json::json!({ "error": error.to_string() }))?,
    };
    text.push(b'\n');
    writer.write_all(&text).await?;
    writer.shutdown().await
}

/// Asks the agent for its status.
///
/// # Errors
/// Where no agent answers, or not as this version expects.
pub async fn request_status(state_directory: &Path) -> Result<serde_json::Value, ControlError> {
    let path = socket_path(state_directory);
    let exchange = |source| ControlError::Exchange {
        path: path.clone(),
        source,
    };
    let mut stream = UnixStream::connect(&path)
        .await
        .map_err(|source| ControlError::Connect {
            path: path.clone(),
            source,
        })?;
    let conversation = async {
        let mut request = serde_json::to_vec(&Request::Status)?;
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
        Ok(value) if value.get("error").is_none() => Ok(value),
        _ => Err(ControlError::Answer { path, answer }),
    }
}
