//! Which servers a process is connected to.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use super::Lab;
use super::command::run;
use super::error::Result;

/// A connected stream socket, as ss(8) shows it.
struct Socket<'a> {
    /// The path that it is bound to, as the server's end is.
    path: Option<&'a str>,
    inode: &'a str,
    peer: &'a str,
    users: &'a str,
}

impl Lab {
    /// The paths of the UNIX sockets that a process of the node's namespace is connected to.
    ///
    /// # Errors
    /// When ss(8) does not say.
    pub fn connections(&self, pid: u32) -> Result<BTreeSet<String>> {
        let arguments = ["-x", "-p", "-H", "-n"];
        // The kernel shows a namespace's own ends: the agent's are in the node's, whose servers' may be
        // outside.
        let inside = run(self.node_netns().command("ss").args(arguments))?;
        let outside = run(Command::new("ss").args(arguments))?;
        let sockets = || inside.lines().chain(outside.lines()).filter_map(parse);
        let servers: BTreeMap<&str, &str> = sockets()
            .filter_map(|socket| Some((socket.inode, socket.path?)))
            .collect();
        let user = format!("pid={pid},");
        let ours = sockets().filter(|socket| socket.path.is_none() && socket.users.contains(&user));
        let peers = ours.filter_map(|socket| servers.get(socket.peer).copied());
        Ok(peers.map(ToOwned::to_owned).collect())
    }
}

/// `u_str ESTAB 0 0 /run/db.sock 123 * 124 users:((…))`.
fn parse(line: &str) -> Option<Socket<'_>> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [kind, _, _, _, path, inode, _, peer, users @ ..] = fields.as_slice() else {
        return None;
    };
    (*kind == "u_str").then(|| Socket {
        path: Some(*path).filter(|path| *path != "*"),
        inode,
        peer,
        users: users.first().copied().unwrap_or_default(),
    })
}
