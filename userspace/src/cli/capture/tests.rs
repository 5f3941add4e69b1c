use proptest::prelude::*;

use super::*;

/// A writer of captures, in either byte order.
#[derive(Clone, Copy)]
pub(crate) struct Order(pub(crate) fn(u32) -> [u8; 4], pub(crate) fn(u16) -> [u8; 2]);

pub(crate) const LITTLE: Order = Order(u32::to_le_bytes, u16::to_le_bytes);
pub(crate) const BIG: Order = Order(u32::to_be_bytes, u16::to_be_bytes);

pub(crate) fn pcap(order: Order, magic: u32, link_type: u32, frames: &[&[u8]]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(order.0(magic));
    file.extend(order.1(2));
    file.extend(order.1(4));
    for word in [0, 0, 65_535, link_type] {
        file.extend(order.0(word));
    }
    for frame in frames {
        record(order, frame, frame.len(), &mut file);
    }
    file
}

fn record(order: Order, frame: &[u8], length: usize, file: &mut Vec<u8>) {
    for word in [1_700_000_000, 0, frame.len() as u32, length as u32] {
        file.extend(order.0(word));
    }
    file.extend(frame);
}

pub(crate) fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = order.0(padded as u32 + 12);
    let mut block = Vec::new();
    block.extend(order.0(kind));
    block.extend(length);
    block.extend(body);
    block.resize(8 + padded, 0);
    block.extend(length);
    block
}

pub(crate) fn section(order: Order) -> Vec<u8> {
    let mut body = order.0(0x1a2b_3c4d).to_vec();
    body.extend(order.1(1));
    body.extend(order.1(0));
    body.extend([0xff; 8]);
    block(order, 0x0a0d_0d0a, &body)
}

pub(crate) fn interface(order: Order, link_type: u16, snapshot_length: u32) -> Vec<u8> {
    let mut body = order.1(link_type).to_vec();
    body.extend(order.1(0));
    body.extend(order.0(snapshot_length));
    block(order, 1, &body)
}

pub(crate) fn enhanced(order: Order, interface: u32, frame: &[u8], length: u32) -> Vec<u8> {
    let words = [interface, 0, 0, frame.len() as u32, length];
    let mut body: Vec<u8> = words.into_iter().flat_map(order.0).collect();
    body.extend(frame);
    block(order, 6, &body)
}

/// What reading a whole capture gives: frames, and the error that ended it or was passed over.
fn read_all(file: &[u8]) -> (Vec<Vec<u8>>, Vec<String>) {
    let (mut frames, mut errors) = (Vec::new(), Vec::new());
    let mut capture = match Capture::open(file) {
        Ok(capture) => capture,
        Err(error) => return (frames, vec![error.to_string()]),
    };
    loop {
        match capture.next_frame() {
            Ok(Some(frame)) => frames.push(frame.bytes.to_vec()),
            Ok(None) => return (frames, errors),
            Err(error) => {
                errors.push(error.to_string());
                if !error.is_of_one_frame() {
                    return (frames, errors);
                }
            }
        }
    }
}

fn read_good(file: &[u8]) -> Vec<Vec<u8>> {
    let (frames, errors) = read_all(file);
    assert_eq!(errors, Vec::<String>::new());
    frames
}

/// A reader that gives one byte at a time, as a slow pipe may.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (self.0.split_first(), buffer.first_mut()) {
            (Some((byte, rest)), Some(space)) => {
                *space = *byte;
                self.0 = rest;
                Ok(1)
            }
            _ => Ok(0),
        }
    }
}

const ONE: &[u8] = b"frame one";
const TWO: &[u8] = b"and two";

#[test]
fn a_pcap_is_read_in_either_byte_order_and_precision() {
    for order in [LITTLE, BIG] {
        for magic in [0xa1b2_c3d4, 0xa1b2_3c4d] {
            let file = pcap(order, magic, 1, &[ONE, TWO, b""]);
            assert_eq!(read_good(&file), [ONE, TWO, b""]);
        }
    }
}

#[test]
fn a_pcapng_is_read_in_either_byte_order_across_sections() {
    let file = [
        section(LITTLE),
        interface(LITTLE, 1, 0),
        enhanced(LITTLE, 0, ONE, 9),
        block(LITTLE, 0x0bad, b"a block that nobody knows"),
        section(BIG),
        interface(BIG, 1, 0),
        enhanced(BIG, 0, TWO, 7),
    ]
    .concat();
    assert_eq!(read_good(&file), [ONE, TWO]);
}

#[test]
fn a_simple_packet_block_ends_where_its_frame_or_the_snapshot_does() {
    let simple = |length: u32| {
        let body = [LITTLE.0(length).as_slice(), ONE].concat();
        block(LITTLE, 3, &body)
    };
    let file = [section(LITTLE), interface(LITTLE, 1, 5), simple(9)].concat();
    assert_eq!(read_good(&file), [&ONE[..5]]);
    let file = [section(LITTLE), interface(LITTLE, 1, 0), simple(9)].concat();
    assert_eq!(read_good(&file), [ONE]);
}

#[test]
fn the_length_on_the_wire_is_kept_beside_the_captured_bytes() {
    let mut file = pcap(LITTLE, 0xa1b2_c3d4, 1, &[]);
    record(LITTLE, ONE, 1500, &mut file);
    let mut capture = Capture::open(file.as_slice()).unwrap();
    let frame = capture.next_frame().unwrap().unwrap();
    assert_eq!((frame.bytes, frame.length), (ONE, 1500));
}

#[test]
fn hex_lines_may_have_separators_comments_and_a_prefix() {
    let text = "# two frames\n\n0a0B0c\n  0x0a:0b:0c # the same\r\n0a-0b 0c\t\n0a0b.0c";
    assert_eq!(read_good(text.as_bytes()), vec![[10, 11, 12]; 4]);
}

#[test]
fn a_bad_hex_line_is_named_and_the_lines_around_it_are_read() {
    let (frames, errors) = read_all(b"0a\n0a0\n\nxyz\n0b 0 c\n0c");
    assert_eq!(frames, [[10], [12]]);
    assert_eq!(
        errors,
        [
            "line 2 is no frame in hex: the byte that ends at column 3 has one digit",
            "line 4 is no frame in hex: column 1 holds 'x'",
            "line 5 is no frame in hex: the byte that ends at column 4 has one digit",
        ]
    );
}

#[test]
fn an_endless_line_is_refused_and_does_not_fill_the_memory() {
    let mut text = b"0a\n".to_vec();
    text.resize(8 * MAX_FRAME, b'0');
    text.extend(b"\n0b\n");
    let (frames, errors) = read_all(&text);
    assert_eq!(frames, [[10], [11]]);
    assert_eq!(
        errors,
        ["line 2 is no frame in hex: it is longer than 262144 bytes"]
    );
}

#[test]
fn an_empty_input_is_an_empty_capture() {
    assert_eq!(read_good(b""), Vec::<Vec<u8>>::new());
}

#[test]
fn another_file_is_recognized_as_none_of_the_formats() {
    let (_, errors) = read_all(b"\x7fELF\x02\x01");
    assert_eq!(
        errors,
        [
            "the input is neither pcap nor pcapng nor lines of hex: it starts with the bytes 7f454c46"
        ]
    );
}

#[test]
fn a_pcap_of_another_link_layer_is_refused() {
    let (_, errors) = read_all(&pcap(LITTLE, 0xa1b2_c3d4, 113, &[ONE]));
    assert_eq!(
        errors,
        [
            "the pcap record at offset 0 has link type 113, not Ethernet (1): capture on an \
             Ethernet interface, not on `any`"
        ]
    );
}

#[test]
fn frames_of_other_link_layers_in_a_pcapng_are_passed_over() {
    let file = [
        section(LITTLE),
        interface(LITTLE, 1, 0),
        interface(LITTLE, 101, 0),
        enhanced(LITTLE, 1, TWO, 7),
        enhanced(LITTLE, 0, ONE, 9),
    ]
    .concat();
    let (frames, errors) = read_all(&file);
    assert_eq!(frames, [ONE]);
    assert!(
        errors[0].contains("at offset 68 has link type 101"),
        "{errors:?}"
    );
}

#[test]
fn a_cut_file_gives_its_whole_frames_and_says_where_it_ends() {
    let file = pcap(LITTLE, 0xa1b2_c3d4, 1, &[ONE, TWO]);
    let (frames, errors) = read_all(&file[..file.len() - 1]);
    assert_eq!(frames, [ONE]);
    assert_eq!(
        errors,
        ["the pcap file is cut short: the record at offset 49 needs 23 bytes, 22 are left"]
    );
    let (frames, errors) = read_all(&file[..file.len() - 20]);
    assert_eq!(frames, [ONE]);
    assert_eq!(
        errors,
        ["the pcap file is cut short: the record at offset 49 needs 16 bytes, 3 are left"]
    );
    let (_, errors) = read_all(&file[..10]);
    assert_eq!(
        errors,
        ["the pcap file is cut short: the record at offset 0 needs 24 bytes, 10 are left"]
    );

    let file = [
        section(BIG),
        interface(BIG, 1, 0),
        enhanced(BIG, 0, ONE, 9),
        enhanced(BIG, 0, TWO, 7),
    ]
    .concat();
    let (frames, errors) = read_all(&file[..file.len() - 4]);
    assert_eq!(frames, [ONE]);
    assert_eq!(
        errors,
        ["the pcapng file is cut short: the record at offset 92 needs 40 bytes, 36 are left"]
    );
}

#[test]
fn a_damaged_length_is_refused_before_anything_is_read_for_it() {
    let mut file = pcap(LITTLE, 0xa1b2_c3d4, 1, &[ONE]);
    file[24 + 11] = 0x7f;
    let (_, errors) = read_all(&file);
    assert!(errors[0].contains("claims 2130706441 bytes"), "{errors:?}");

    let mut file = [section(LITTLE), interface(LITTLE, 1, 0)].concat();
    file[28 + 4] = 21;
    let (_, errors) = read_all(&file);
    assert!(errors[0].contains("its length is impossible"), "{errors:?}");
}

#[test]
fn a_frame_of_an_interface_that_nobody_described_is_an_error() {
    let file = [section(LITTLE), enhanced(LITTLE, 0, ONE, 9)].concat();
    let (_, errors) = read_all(&file);
    assert!(
        errors[0].contains("an interface that no block described"),
        "{errors:?}"
    );
}

#[test]
fn a_capture_that_trickles_in_reads_the_same() {
    for file in [
        pcap(BIG, 0xa1b2_c3d4, 1, &[ONE, TWO]),
        [
            section(LITTLE),
            interface(LITTLE, 1, 0),
            enhanced(LITTLE, 0, ONE, 9),
        ]
        .concat(),
        b"0a0b\n0c".to_vec(),
    ] {
        let mut capture = Capture::open(Trickle(&file)).unwrap();
        let mut frames = Vec::new();
        while let Some(frame) = capture.next_frame().unwrap() {
            frames.push(frame.bytes.to_vec());
        }
        assert_eq!(frames, read_good(&file));
    }
}

proptest! {
    /// Bytes behind a good start, so that the blocks' parsers get them.
    #[test]
    fn no_bytes_make_the_reader_panic(
        start in prop::sample::select(vec![
            Vec::new(),
            pcap(LITTLE, 0xa1b2_c3d4, 1, &[]),
            [section(BIG), interface(BIG, 1, 0)].concat(),
            [section(LITTLE), interface(LITTLE, 1, 0), enhanced(LITTLE, 0, ONE, 9)].concat(),
        ]),
        kind in prop::sample::select(vec![1u32, 2, 3, 4, 5, 6, 10, 0x0bad, 0x0a0d_0d0a]),
        body in prop::collection::vec(any::<u8>(), 0..64),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut file = [start, block(LITTLE, kind, &body), body].concat();
        for (index, byte) in flips {
            let at = index.index(file.len());
            file[at] = byte;
        }
        read_all(&file);
    }
}
