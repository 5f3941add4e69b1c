//! Which `Static_MAC_Binding` rows node IPs need. Pure: node IPs, followers and rows in, row operations out.
