//! OpenFlow as Open vSwitch speaks it, and the control socket of its daemon. It knows nothing of
//! OVN.

mod changes;
mod flow;
mod matching;
mod native;
mod ofctl;
mod parse;
mod session;
mod switch;
pub mod unixctl;
pub mod wire;

pub use changes::{FlowChanges, diff};
pub use flow::{Action, Cookie, Flow, FlowKey, InstalledFlow, Port};
pub use matching::{Match, Protocol};
pub use native::{FlowEvent, FlowWatch, NativeSwitch, PortEvent, PortWatch, UnwritableFlow};
pub use ofctl::OfCtl;
pub use parse::{ParseFlowError, parse_dump, parse_flow};
pub use session::{Session, SessionError};
pub use switch::{PortDescription, Switch, SwitchError};
