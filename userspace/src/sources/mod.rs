//! Where Node and `UplinkState` objects come from.
