//! The mirror on real ovsdb-servers that end, hang, lie and are written to by others. Every test
//! ends with a look at the database by a client of its own: nothing lost, nothing wrong.

mod clocks;
mod clusters;
mod networks;
mod others;
mod rig;
mod servers;
mod two;
