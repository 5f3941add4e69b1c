//! What the kernel calls the ports of an embedded switch.

use std::fmt;

/// A port of an embedded switch, by `phys_port_name`, whose forms are devlink's
/// (`Documentation/networking/devlink/devlink-port.rst`). A controller other than 0 is that of a host
/// beside the DPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PortName {
    /// `p0`: the way out, no representor.
    Physical {
        /// The port.
        port: u32,
    },
    /// `pf0`, `c1pf0`, and `pf0hpf` as older drivers of BlueField have it: a PF of the host.
    Pf {
        /// The controller, where it is named.
        controller: Option<u32>,
        /// The PF.
        pf: u32,
    },
    /// `pf0vf3`, `c1pf0vf3`: a VF.
    Vf {
        /// The controller, where it is named.
        controller: Option<u32>,
        /// Its PF; drivers before Linux 4.20 name the VF alone.
        pf: Option<u32>,
        /// The VF.
        vf: u32,
    },
    /// `pf0sf88`, `c1pf0sf88`: a scalable function.
    Sf {
        /// The controller, where it is named.
        controller: Option<u32>,
        /// Its PF.
        pf: u32,
        /// The function.
        sf: u32,
    },
    /// `rep0-3`: what simulators of OVN-Kubernetes' lanes call theirs.
    Simulated {
        /// The simulated PF.
        pf: u32,
        /// The representor.
        index: u32,
    },
}

impl PortName {
    /// Reads a `phys_port_name`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(vf) = number(text) {
            return Some(Self::Vf {
                controller: None,
                pf: None,
                vf,
            });
        }
        if let Some(simulated) = Self::simulated(text) {
            return Some(simulated);
        }
        let (controller, text) = match text.strip_prefix('c') {
            Some(rest) => {
                let (controller, rest) = leading_number(rest)?;
                (Some(controller), rest)
            }
            None => (None, text),
        };
        if let Some(rest) = text.strip_prefix("pf") {
            let (pf, rest) = leading_number(rest)?;
            if matches!(rest, "" | "hpf") {
                return Some(Self::Pf { controller, pf });
            }
            if let Some(vf) = rest.strip_prefix("vf") {
                let (pf, vf) = (Some(pf), number(vf)?);
                return Some(Self::Vf { controller, pf, vf });
            }
            let sf = number(rest.strip_prefix("sf")?)?;
            return Some(Self::Sf { controller, pf, sf });
        }
        match controller {
            None => Some(Self::Physical {
                port: number(text.strip_prefix('p')?)?,
            }),
            Some(_) => None,
        }
    }

    /// Reads the name of a simulator's representor.
    #[must_use]
    pub fn simulated(text: &str) -> Option<Self> {
        let (pf, index) = text.strip_prefix("rep")?.split_once('-')?;
        Some(Self::Simulated {
            pf: number(pf)?,
            index: number(index)?,
        })
    }

    /// Whether the host, or a guest of it, is behind the port.
    #[must_use]
    pub const fn is_representor(self) -> bool {
        !matches!(self, Self::Physical { .. })
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |controller: &Option<u32>| match controller {
            Some(controller) => format!(" of controller {controller}"),
            None => String::new(),
        };
        match self {
            Self::Physical { port } => write!(f, "physical port {port}"),
            Self::Pf { controller, pf } => write!(f, "PF {pf}{}", of(controller)),
            Self::Vf {
                controller,
                pf: Some(pf),
                vf,
            } => write!(f, "VF {vf} of PF {pf}{}", of(controller)),
            Self::Vf { vf, .. } => write!(f, "VF {vf}"),
            Self::Sf { controller, pf, sf } => {
                write!(f, "SF {sf} of PF {pf}{}", of(controller))
            }
            Self::Simulated { pf, index } => write!(f, "simulated function {index} of PF {pf}"),
        }
    }
}

/// A number without a sign, and nothing else.
fn number(text: &str) -> Option<u32> {
    let (number, rest) = leading_number(text)?;
    rest.is_empty().then_some(number)
}

fn leading_number(text: &str) -> Option<(u32, &str)> {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_names_are_read_and_others_are_not() {
        for (text, shown) in [
            ("p0", "physical port 0"),
            ("p17", "physical port 17"),
            ("pf0", "PF 0"),
            ("pf1hpf", "PF 1"),
            ("c1pf0", "PF 0 of controller 1"),
            ("c1pf0hpf", "PF 0 of controller 1"),
            ("pf0vf3", "VF 3 of PF 0"),
            ("c1pf0vf3", "VF 3 of PF 0 of controller 1"),
            ("pf1sf88", "SF 88 of PF 1"),
            ("c2pf1sf88", "SF 88 of PF 1 of controller 2"),
            ("12", "VF 12"),
            ("rep0-3", "simulated function 3 of PF 0"),
        ] {
            let read = PortName::parse(text).map(|it| it.to_string());
            assert_eq!(read.as_deref(), Some(shown), "{text}");
        }
        for text in [
            "",
            "p",
            "p0s0",
            "p-1",
            "p+1",
            "P0",
            "pf",
            "pfhpf",
            "pf0vf",
            "pf0vf3x",
            "pf0vfsf1",
            "c1",
            "c1p0",
            "cpf0",
            "c1pf",
            "rep0",
            "rep0-",
            "rep-3",
            "rep0-3-4",
            "eth0",
            "p0 ",
            "pf4294967296",
            "pf0vf３",
        ] {
            assert_eq!(PortName::parse(text), None, "{text:?}");
        }
    }
}
