//! An OVSDB client (RFC 7047 and ovsdb-server(7)). It knows nothing of OVN.

pub mod value;

pub use value::{Atom, Datum, Row, RowError, Uuid};
