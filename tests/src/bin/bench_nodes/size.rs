//! How many followers know how many other nodes.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::others::FAMILIES;

/// Followers and other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Size {
    pub(crate) followers: u16,
    pub(crate) nodes: u16,
}

impl Size {
    /// The rows that all of them need, both families.
    pub(crate) fn rows(self) -> usize {
        usize::from(self.followers) * usize::from(self.nodes) * FAMILIES
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}x{}", self.followers, self.nodes))
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || format!("{text:?} is not <followers>x<nodes>");
        let (followers, nodes) = text.split_once('x').ok_or_else(wanted)?;
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        match (number(followers), number(nodes)) {
            // A node's number is in 16 bits of its address, and some more join.
            (Some(followers), Some(nodes)) if nodes <= 30_000 => Ok(Self { followers, nodes }),
            _ => Err(wanted()),
        }
    }
}
