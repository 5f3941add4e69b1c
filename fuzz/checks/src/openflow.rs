//! OpenFlow decoding: one message of 1.0 or 1.3.

use bytes::BytesMut;
use neighsteer::openflow::wire::{Header, Message, Version};

pub(super) fn run(data: &[u8]) {
    let _ = Header::frame_length(data);
    let Ok((header, message)) = Message::decode(data) else {
        return;
    };
    let version = Version::from_number(header.version).unwrap_or(Version::V1_3);
    let mut written = BytesMut::new();
    // What we would never write need not be writable.
    if message.encode(version, header.xid, &mut written).is_ok() {
        let (again, read) = Message::decode(&written).expect("what we have written");
        assert_eq!(read, message);
        assert_eq!((again.version, again.xid), (header.version, header.xid));
    }
}
