//! Static rows on real northbound servers that end, hang and are written to by others. Every test
//! ends with a look at the database by a client of its own: nothing lost, nothing doubled, nothing
//! touched that is not ours, and never a row for a port that was gone.

mod clusters;
mod gathering;
mod guards;
mod others;
mod rig;
mod servers;
mod state_file;
mod two;
