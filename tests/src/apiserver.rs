//! A Kubernetes API server of the tests' own: lists and watches of two kinds over HTTPS, with real
//! resource versions, bookmarks, 410 Gone, a token, and faults on demand.

mod answer;
mod http;
mod store;
mod tls;

use std::{
    fs, io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::TlsAcceptor;

use store::Store;
pub use store::{NODES, UPLINK_STATES};

/// A server on a loopback address; it ends with it.
#[derive(Debug)]
pub struct ApiServer {
    directory: TempDir,
    address: SocketAddr,
    acceptor: Acceptor,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

/// What a request was, and how it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// `GET`, if all is well.
    pub method: String,
    /// Without the query.
    pub path: String,
    /// As it was sent.
    pub query: String,
    /// The HTTP status; 0 = it was left without an answer.
    pub status: u16,
}

/// What a server does instead of answering as it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This HTTP status.
    Status(u16),
    /// The connection is closed before the answer.
    Close,
    /// The answer breaks off in its middle.
    Truncate,
    /// The answer comes in pieces of so many bytes, with a pause of 1 ms between.
    Trickle(usize),
    /// There is no object, says the list.
    Empty,
    /// Nothing is said until the client goes.
    Silence,
    /// A watch begins, and nothing is said in it until the client goes.
    Mute,
    /// This is the answer's body, or one line of the watch's.
    Say(String),
}

/// Which requests a fault is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Lists.
    List,
    /// Watches.
    Watch,
}

#[derive(Clone)]
struct Acceptor(TlsAcceptor);

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Acceptor")
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Changes whenever the state does.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    store: Store,
    token: String,
    recorded: Vec<Recorded>,
    faults: Vec<(&'static str, Verb, Fault)>,
    /// Connections of former ones are cut.
    epoch: u64,
    /// Connections that stand.
    connections: usize,
    /// Watches that go on.
    watches: usize,
}

impl ApiServer {
    /// Starts a server without objects; `uplinkstates` are not known to it.
    ///
    /// # Errors
    /// When it cannot listen, or write its files.
    pub async fn start() -> io::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("neighsteer-api-")
            .tempdir()?;
        let acceptor = Acceptor(tls::acceptor(&directory.path().join("ca.pem"))?);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let state = State {
            token: "first".to_owned(),
            ..State::default()
        };
        let mut server = Self {
            address: listener.local_addr()?,
            directory,
            acceptor,
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                changes: watch::Sender::new(0),
            }),
            listening: None,
        };
        server.write_token("first")?;
        server.write_kubeconfig()?;
        server.listen(listener);
        Ok(server)
    }

    /// A kubeconfig with the server's address, its authority, and the file of the token.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.path("kubeconfig")
    }

    /// No longer listens, and cuts every connection.
    pub fn stop(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.abort();
        }
        self.cut();
    }

    /// Listens again, at the same address.
    ///
    /// # Errors
    /// When the port is taken.
    pub async fn resume(&mut self) -> io::Result<()> {
        let listener = TcpListener::bind(self.address).await?;
        self.listen(listener);
        Ok(())
    }

    /// Cuts every connection.
    pub fn cut(&self) {
        self.change(|state| state.epoch += 1);
    }

    /// Adds an object, or changes it; `object` needs `metadata.name`.
    ///
    /// # Panics
    /// When it has none.
    pub fn put(&self, path: &'static str, object: Value) {
        self.change(|state| state.store.put(path, object));
    }

    /// Removes an object that is there.
    ///
    /// # Panics
    /// When it is not.
    pub fn remove(&self, path: &'static str, name: &str) {
        self.change(|state| state.store.remove(path, name));
    }

    /// Removes an object without telling those who watch, as if they had missed it.
    pub fn forget(&self, path: &'static str, name: &str) {
        self.change(|state| state.store.forget(path, name));
    }

    /// Sends bookmarks to all who watch and want them.
    pub fn bookmark(&self) {
        self.change(|state| state.store.bookmark());
    }

    /// Forgets what has changed up to now: who goes on from before the last change gets 410 Gone.
    pub fn compact(&self) {
        self.change(|state| state.store.compact());
    }

    /// Whether the server knows a kind.
    pub fn serve(&self, path: &'static str, serves: bool) {
        self.change(|state| state.store.serve(path, serves));
    }

    /// Does this at the next request of a kind. Faults for the same requests come one after the other.
    pub fn fail(&self, path: &'static str, verb: Verb, fault: Fault) {
        self.change(|state| state.faults.push((path, verb, fault)));
    }

    /// Takes no other token any more; the client's file keeps the former one.
    pub fn rotate_token(&self, token: &str) {
        self.change(|state| token.clone_into(&mut state.token));
    }

    /// Writes the token that the client sends.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_token(&self, token: &str) -> io::Result<()> {
        fs::write(self.path("token"), token)
    }

    /// Every request so far.
    #[must_use]
    pub fn recorded(&self) -> Vec<Recorded> {
        self.state().recorded.clone()
    }

    /// How many faults are still to come.
    #[must_use]
    pub fn faults_left(&self) -> usize {
        self.state().faults.len()
    }

    /// How many connections stand.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.state().connections
    }

    /// How many watches go on.
    #[must_use]
    pub fn watches(&self) -> usize {
        self.state().watches
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    fn write_kubeconfig(&self) -> io::Result<()> {
        let file = |name: &str| -> String { self.path(name).display().to_string() };
        let (authority, token) = (file("ca.pem"), file("token"));
        fs::write(
            self.kubeconfig(),
            format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: tested\n\
                 clusters: [{{name: c, cluster: {{server: 'https://{}', \
                 certificate-authority: '{authority}'}}}}]\n\
                 contexts: [{{name: tested, context: {{cluster: c, user: u}}}}]\n\
                 users: [{{name: u, user: {{tokenFile: '{token}'}}}}]\n",
                self.address
            ),
        )
    }

    fn listen(&mut self, listener: TcpListener) {
        let (acceptor, shared) = (self.acceptor.clone(), Arc::clone(&self.shared));
        self.listening = Some(tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                        let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
                        connections.spawn(async move {
                            // A client that is not trusted, or does not trust, goes.
                            if let Ok(stream) = acceptor.0.accept(stream).await {
                                answer::serve(stream, &shared).await;
                            }
                        });
                    },
                    Some(_) = connections.join_next() => {}
                }
            }
        }));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.shared.changes.send_modify(|changes| *changes += 1);
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
