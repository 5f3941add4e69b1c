//! A cable between two network namespaces, to be cut.

use std::{
    net::{IpAddr, Ipv4Addr},
    process::{self, Command},
    sync::atomic::{AtomicU32, Ordering},
};

use crate::lab::{LabError, Namespace, run};

/// The address of the server's end.
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// Two namespaces with a bridge between them in a third. Cut there, neither end notices.
#[derive(Debug)]
pub struct Cable {
    /// Where the client is.
    pub client: Namespace,
    /// Where the server is.
    pub server: Namespace,
    middle: Namespace,
}

impl Cable {
    /// Lays a cable.
    ///
    /// # Errors
    /// Without root, or where a tool fails.
    pub fn lay() -> Result<Self, LabError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let named =
            |part: &str| Namespace::named(format!("nscable{}-{number}-{part}", process::id()));
        let cable = Self {
            client: named("client"),
            server: named("server"),
            middle: named("middle"),
        };
        for namespace in [&cable.client, &cable.server, &cable.middle] {
            namespace.create()?;
        }
        cable
            .middle
            .ip("link add bridge type bridge\nlink set bridge up")?;
        for (end, port, address) in [
            (&cable.client, "client", "192.0.2.1"),
            (&cable.server, "server", "192.0.2.2"),
        ] {
            end.ip(&format!(
                "link add end type veth peer name {port} netns {}\n\
                 addr add {address}/24 dev end\n\
                 link set end up",
                cable.middle.name()
            ))?;
            cable.middle.ip(&format!(
                "link set {port} master bridge\nlink set {port} up"
            ))?;
        }
        Ok(cable)
    }

    /// The address of the server's end.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        IpAddr::V4(SERVER)
    }

    /// Loses every packet from now on, without a word to either end.
    ///
    /// # Errors
    /// Where a tool fails.
    pub fn cut(&self) -> Result<(), LabError> {
        // The ends keep their carrier: only the bridge forgets its ports.
        self.middle
            .ip("link set client nomaster\nlink set server nomaster")
    }

    /// Forwards again.
    ///
    /// # Errors
    /// Where a tool fails.
    pub fn mend(&self) -> Result<(), LabError> {
        self.middle
            .ip("link set client master bridge\nlink set server master bridge")
    }

    /// Ends every TCP connection of the server by a reset.
    ///
    /// # Errors
    /// Where a tool fails.
    pub fn reset(&self) -> Result<(), LabError> {
        let mut kill: Command = self.server.command("ss");
        kill.args(["--kill", "--tcp", "state", "established"]);
        run(&mut kill).map(drop)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for namespace in [&self.client, &self.server, &self.middle] {
            if let Err(error) = namespace.remove() {
                tracing::warn!(%error, namespace = namespace.name(), "namespace stays");
            }
        }
    }
}
