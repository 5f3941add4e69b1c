use clap::Parser;

use super::*;
use crate::cli::capture::tests::{LITTLE, enhanced, interface, pcap, section};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: ClassifyArgs,
}

const BRIDGE: &str = "--bridge-mac=02:42:ac:12:00:03";

/// Frames to the bridge MAC and others, one of each sort.
const FRAMES: &str = "\
# ARP reply
0242ac120003 0242ac120063 0806 0001080006040002 0242ac120063 ac120063 0242ac120003 ac120003
# who-has, broadcast
ffffffffffff 0242ac120063 0806 0001080006040001 0242ac120063 ac120063 000000000000 ac120003
# ARP, cut, VLAN 5
0242ac120003 0242ac120063 81000005 0806 0001080006040002
# Neighbor Advertisement, hop limit 64, code 1, 8 bytes
0242ac120003 0242ac120063 86dd 6000000000083a40 fd000000000000000000000000000099 fd000000000000000000000000000003 8801000060000000
# IPv4
0242ac120003 0242ac120063 0800 4500
";

fn run_on(flags: &[&str], json: bool, input: impl Read) -> (String, Result<u64, ClassifyError>) {
    let args = Cli::try_parse_from(["classify"].iter().chain(flags))
        .unwrap()
        .args;
    let mut output = Vec::new();
    let result = run(&args, json, input, &mut output);
    (String::from_utf8(output).unwrap(), result)
}

#[test]
fn text_is_one_line_a_frame() {
    let (output, result) = run_on(&[BRIDGE], false, FRAMES.as_bytes());
    insta::assert_snapshot!(output);
    assert_eq!(result.unwrap(), 5);
}

#[test]
fn json_is_one_object_a_frame() {
    let (output, result) = run_on(&[BRIDGE, "--vlan=5"], true, FRAMES.as_bytes());
    insta::assert_snapshot!(output);
    assert_eq!(result.unwrap(), 5);
}

#[test]
fn without_a_bridge_mac_nothing_is_decided() {
    let (output, result) = run_on(&[], false, FRAMES.as_bytes());
    result.unwrap();
    assert!(
        output.lines().all(|line| line.contains(" undecided ")),
        "{output}"
    );
}

#[test]
fn a_vlan_needs_a_bridge_mac_and_an_id_that_names_a_vlan() {
    for flags in [
        vec!["--vlan=5"],
        vec![BRIDGE, "--vlan=0"],
        vec![BRIDGE, "--vlan=4095"],
        vec!["--bridge-mac=02:42"],
    ] {
        assert!(
            Cli::try_parse_from(["classify"].iter().chain(&flags)).is_err(),
            "{flags:?}"
        );
    }
}

#[test]
fn good_frames_before_and_behind_a_bad_line_are_printed() {
    let text = "ffffffffffff0242ac1200630806\n123\nffffffffffff0242ac1200630800";
    let (output, result) = run_on(&[BRIDGE], false, text.as_bytes());
    insta::assert_snapshot!(output, @r"
         1  arp-other               flood      truncated
         3  not-neighbour           normal     -
    ");
    let error = anyhow::Error::new(result.unwrap_err());
    assert_eq!(
        format!("{error:#}"),
        "1 of 3 frames cannot be read, the first of them frame 2: line 2 is no frame in hex: the \
         byte that ends at column 3 has one digit"
    );
}

#[test]
fn a_cut_pcap_prints_its_frames_and_says_where_it_ends() {
    let frame = [[0xff; 12].as_slice(), &[8, 6]].concat();
    let file = pcap(LITTLE, 0xa1b2_c3d4, 1, &[&frame, &frame]);
    let (output, result) = run_on(&[BRIDGE], false, &file[..file.len() - 5]);
    assert_eq!(output.lines().count(), 1, "{output}");
    let error = anyhow::Error::new(result.unwrap_err());
    assert_eq!(
        format!("{error:#}"),
        "stopped after 1 frames: the pcap file is cut short: the record at offset 54 needs 30 \
         bytes, 25 are left"
    );
}

#[test]
fn a_frame_that_the_capture_cut_says_so() {
    let frame = [[0xff; 12].as_slice(), &[8, 6]].concat();
    let file = [
        section(LITTLE),
        interface(LITTLE, 1, 14),
        enhanced(LITTLE, 0, &frame, 60),
    ]
    .concat();
    let (output, result) = run_on(&[], false, file.as_slice());
    result.unwrap();
    insta::assert_snapshot!(output, @"     1  arp-other               undecided  truncated,odd-sender  (14 of 60 bytes captured)");
}

/// A writer whose reader has gone away after some bytes.
struct Closing(usize);

impl Write for Closing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let written = bytes.len().min(self.0);
        self.0 -= written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_output_ends_it_quietly() {
    let args = Cli::try_parse_from(["classify"]).unwrap().args;
    for json in [false, true] {
        for room in [0, 10, 100, 20_000] {
            let text = FRAMES.repeat(1_000);
            run(&args, json, text.as_bytes(), Closing(room)).unwrap();
        }
    }
}

/// A full disk.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let args = Cli::try_parse_from(["classify"]).unwrap().args;
    let result = run(&args, false, FRAMES.as_bytes(), Full);
    assert!(
        matches!(result, Err(ClassifyError::Write { .. })),
        "{result:?}"
    );
}

/// A live capture: checks at each read that what came before was shown.
struct Live<'a> {
    lines: std::slice::Iter<'a, &'a str>,
    shown: &'a RefCell<Vec<u8>>,
    given: usize,
}

impl Read for Live<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let shown = self
            .shown
            .borrow()
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        assert_eq!(shown, self.given);
        let Some(line) = self.lines.next() else {
            return Ok(0);
        };
        self.given += 1;
        buffer[..line.len()].copy_from_slice(line.as_bytes());
        Ok(line.len())
    }
}

struct Shown<'a>(&'a RefCell<Vec<u8>>);

impl Write for Shown<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_live_capture_is_shown_live() {
    let args = Cli::try_parse_from(["classify"]).unwrap().args;
    let shown = RefCell::new(Vec::new());
    let live = Live {
        lines: ["0a0b\n", "0c0d\n", "0e\n"].iter(),
        shown: &shown,
        given: 0,
    };
    assert_eq!(run(&args, false, live, Shown(&shown)).unwrap(), 3);
}

#[test]
fn a_missing_file_is_named() {
    let args = Cli::try_parse_from(["classify", "/nonexistent.pcap"])
        .unwrap()
        .args;
    let error = args.open().err().unwrap();
    assert_eq!(error.to_string(), "cannot open /nonexistent.pcap");
}
