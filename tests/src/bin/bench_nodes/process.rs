//! What processes use.

use std::fs;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// A process's memory.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// Resident now (VmRSS), MB.
    pub(crate) resident_mb: f64,
    /// The most so far (VmHWM), MB.
    pub(crate) peak_mb: f64,
}

impl Memory {
    /// Of a process.
    ///
    /// # Errors
    /// When there is no such process.
    pub(crate) fn of(pid: u32) -> anyhow::Result<Self> {
        Self::read(&pid.to_string())
    }

    /// Of this one.
    ///
    /// # Errors
    /// When the system does not say.
    pub(crate) fn own() -> anyhow::Result<Self> {
        Self::read("self")
    }

    fn read(process: &str) -> anyhow::Result<Self> {
        let file = format!("/proc/{process}/status");
        let status = fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
        let mb = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field));
            let kib = line.and_then(|line| line.split_whitespace().next());
            let kib = kib.and_then(|kib| kib.parse::<u32>().ok());
            let kib = kib.with_context(|| format!("no {field} in {file}"))?;
            anyhow::Ok(f64::from(kib) * 1.024e-3)
        };
        Ok(Self {
            resident_mb: mb("VmRSS:")?,
            peak_mb: mb("VmHWM:")?,
        })
    }
}

/// CPU time, s: so far, or of a span of time.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Cpu {
    pub(crate) northbound: f64,
    pub(crate) southbound: f64,
    pub(crate) northd: f64,
    pub(crate) controller: f64,
    pub(crate) agent: f64,
}

impl Cpu {
    /// What was used since.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            northbound: self.northbound - earlier.northbound,
            southbound: self.southbound - earlier.southbound,
            northd: self.northd - earlier.northd,
            controller: self.controller - earlier.controller,
            agent: self.agent - earlier.agent,
        }
    }
}

impl std::fmt::Display for Cpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "CPU s: northbound {:.2}, southbound {:.2}, northd {:.2}, ovn-controller {:.2}, agent {:.2}",
            self.northbound, self.southbound, self.northd, self.controller, self.agent
        )
    }
}
