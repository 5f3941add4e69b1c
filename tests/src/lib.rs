//! The OVN lab and what the tests share.
