//! The interfaces of this network namespace as messages of rtnetlink(7) tell of them. No I/O.

use std::{collections::BTreeMap, sync::Arc};

use nix::errno::Errno;

use super::message::{Message, attribute, messages, read_text, read_u32};
use crate::ids::Mac;

/// `RTM_NEWLINK`: an interface is there, or is another one than before.
const NEW_LINK: u16 = 16;
/// `RTM_DELLINK`.
const DELETE_LINK: u16 = 17;
/// `NLMSG_ERROR`, which also acknowledges.
const ERROR: u16 = 2;
/// `NLMSG_DONE`: the end of a dump.
const DONE: u16 = 3;
/// `NLM_F_DUMP_INTR`: things changed while they were listed.
const DUMP_INTERRUPTED: u16 = 0x10;
/// Length of `struct ifinfomsg`.
const HEADER: usize = 16;
/// `IFLA_ADDRESS`.
const ADDRESS: u16 = 1;
/// `IFLA_IFNAME`.
const NAME: u16 = 3;

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its name.
    pub name: Arc<str>,
    /// Its Ethernet address, where it has one.
    pub mac: Option<Mac>,
}

/// All interfaces by index.
pub type LinkTable = BTreeMap<u32, Link>;

/// What a datagram came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Whether [`Links::table`] is another one.
    pub(super) changed: bool,
    /// Whether they have to be listed (again).
    pub(super) list: bool,
    /// Why the kernel would not list them.
    pub(super) refused: Option<Errno>,
}

/// What is known, and the list that is on its way.
#[derive(Debug, Default)]
pub(super) struct Links {
    table: LinkTable,
    listing: Option<Listing>,
    sequence: u32,
}

/// A list that has not come to its end. What happens meanwhile counts for it, too.
#[derive(Debug)]
struct Listing {
    sequence: u32,
    table: LinkTable,
    interrupted: bool,
}

impl Links {
    /// The interfaces as of the last list and all that was told since.
    pub(super) const fn table(&self) -> &LinkTable {
        &self.table
    }

    /// Begins a list: the sequence number to ask for it with. One that was on its way counts no more.
    pub(super) fn list(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1).max(1);
        self.listing = Some(Listing {
            sequence: self.sequence,
            table: LinkTable::new(),
            interrupted: false,
        });
        self.sequence
    }

    /// Whether a list is on its way.
    pub(super) const fn is_listing(&self) -> bool {
        self.listing.is_some()
    }

    /// Takes in a datagram.
    pub(super) fn take(&mut self, datagram: &[u8]) -> Taken {
        let mut taken = Taken::default();
        for message in messages(datagram) {
            match message {
                Some(message) => self.message(&message, &mut taken),
                // What followed is lost.
                None => taken.list = true,
            }
        }
        taken
    }

    fn message(&mut self, message: &Message<'_>, taken: &mut Taken) {
        let of_list = message.sequence != 0;
        if of_list {
            let current = self.listing.as_mut();
            let Some(listing) = current.filter(|it| it.sequence == message.sequence) else {
                return;
            };
            listing.interrupted |= message.flags & DUMP_INTERRUPTED != 0;
        }
        match message.kind {
            DONE if of_list => self.end(taken),
            ERROR if of_list => {
                let number = read_u32(message.body).map(u32::cast_signed);
                if let Some(number) = number.filter(|it| *it != 0) {
                    self.listing = None;
                    taken.refused = Some(Errno::from_raw(number.saturating_neg()));
                }
            }
            NEW_LINK => {
                let Some((index, link)) = read(message.body) else {
                    return;
                };
                if let Some(listing) = &mut self.listing {
                    listing.table.insert(index, link.clone());
                }
                if !of_list {
                    let former = self.table.insert(index, link.clone());
                    taken.changed |= former != Some(link);
                }
            }
            DELETE_LINK if !of_list => {
                let Some((index, _)) = read(message.body) else {
                    return;
                };
                if let Some(listing) = &mut self.listing {
                    listing.table.remove(&index);
                }
                taken.changed |= self.table.remove(&index).is_some();
            }
            _ => {}
        }
    }

    fn end(&mut self, taken: &mut Taken) {
        let Some(listing) = self.listing.take() else {
            return;
        };
        taken.list |= listing.interrupted;
        taken.changed |= self.table != listing.table;
        self.table = listing.table;
    }
}

/// An interface's index and the rest. A message of another family is not about the interface as such:
/// that of `AF_BRIDGE` says that it joined or left a bridge.
fn read(body: &[u8]) -> Option<(u32, Link)> {
    if *body.first()? != 0 {
        return None;
    }
    let index = read_u32(body.get(4..)?)?;
    let attributes = body.get(HEADER..)?;
    let name = read_text(attribute(attributes, NAME)?);
    let mac = attribute(attributes, ADDRESS).and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
    let link = Link {
        name: name.into(),
        mac: mac.map(Mac),
    };
    Some((index, link))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(16 + body.len()).unwrap();
        let mut bytes = [
            &length.to_ne_bytes()[..],
            &kind.to_ne_bytes(),
            &flags.to_ne_bytes(),
            &sequence.to_ne_bytes(),
            &[0; 4],
            body,
        ]
        .concat();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn body(family: u8, index: u32, name: &str) -> Vec<u8> {
        let mut body = vec![family, 0, 0, 0];
        body.extend(index.to_ne_bytes());
        body.extend([0; 8]);
        for (kind, value) in [
            (ADDRESS, &MAC[..]),
            (NAME, &[name.as_bytes(), b"\0"].concat()),
        ] {
            body.extend(u16::try_from(4 + value.len()).unwrap().to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        body
    }

    fn listed(sequence: u32, index: u32, name: &str) -> Vec<u8> {
        message(NEW_LINK, 2, sequence, &body(0, index, name))
    }

    fn came(index: u32, name: &str) -> Vec<u8> {
        listed(0, index, name)
    }

    fn went(index: u32, name: &str) -> Vec<u8> {
        message(DELETE_LINK, 0, 0, &body(0, index, name))
    }

    fn done(sequence: u32, flags: u16) -> Vec<u8> {
        message(DONE, flags, sequence, &0u32.to_ne_bytes())
    }

    fn names(links: &Links) -> Vec<(u32, &str)> {
        let table = links.table().iter();
        table.map(|(index, link)| (*index, &*link.name)).collect()
    }

    const CHANGED: Taken = Taken {
        changed: true,
        list: false,
        refused: None,
    };

    #[test]
    fn a_list_counts_at_its_end_with_what_happened_meanwhile() {
        let mut links = Links::default();
        let sequence = links.list();
        assert_eq!(
            links.take(&[listed(sequence, 1, "lo"), listed(sequence, 2, "p0")].concat()),
            Taken::default()
        );
        assert_eq!(links.take(&came(3, "pf0hpf")), CHANGED);
        assert_eq!(links.take(&went(2, "p0")), Taken::default());
        assert_eq!(links.take(&done(sequence, 0)), CHANGED);
        assert_eq!(names(&links), [(1, "lo"), (3, "pf0hpf")]);
        assert_eq!(links.table()[&3].mac, Some(Mac(MAC)));
    }

    #[test]
    fn a_link_is_renamed_and_comes_back_with_another_index() {
        let mut links = Links::default();
        assert_eq!(links.take(&came(3, "pf0hpf")), CHANGED);
        assert_eq!(links.take(&came(3, "pf0hpf")), Taken::default());
        assert_eq!(links.take(&came(3, "host0")), CHANGED);
        assert_eq!(names(&links), [(3, "host0")]);
        assert_eq!(
            links.take(&[went(3, "host0"), came(9, "host0")].concat()),
            CHANGED
        );
        assert_eq!(names(&links), [(9, "host0")]);
    }

    #[test]
    fn what_is_missing_in_a_new_list_has_gone() {
        let mut links = Links::default();
        links.take(&[came(1, "lo"), came(2, "p0")].concat());
        let first = links.list();
        let second = links.list();
        let late = [listed(first, 2, "p0"), done(first, 0)].concat();
        assert_eq!(links.take(&late), Taken::default(), "it counts no more");
        links.take(&[listed(second, 1, "lo"), done(second, 0)].concat());
        assert_eq!(names(&links), [(1, "lo")]);
    }

    #[test]
    fn an_interrupted_list_is_asked_for_again_and_a_refused_one_is_told() {
        let mut links = Links::default();
        let sequence = links.list();
        let taken = links.take(&done(sequence, DUMP_INTERRUPTED));
        assert!(taken.list);
        let sequence = links.list();
        let busy = message(ERROR, 0, sequence, &(-16i32).to_ne_bytes());
        assert_eq!(links.take(&busy).refused, Some(Errno::EBUSY));
    }

    #[test]
    fn a_bridge_that_loses_a_port_has_not_lost_the_link() {
        let mut links = Links::default();
        links.take(&came(3, "pf0hpf"));
        let left = message(DELETE_LINK, 0, 0, &body(7, 3, "pf0hpf"));
        assert_eq!(links.take(&left), Taken::default());
        assert_eq!(names(&links), [(3, "pf0hpf")]);
    }

    #[test]
    fn a_datagram_that_is_cut_short_asks_for_a_list() {
        let mut links = Links::default();
        let mut datagram = came(3, "pf0hpf");
        datagram.extend(&came(4, "p0")[..20]);
        let taken = links.take(&datagram);
        assert!(taken.changed && taken.list);
        assert_eq!(names(&links), [(3, "pf0hpf")]);
        for length in 0..datagram.len() {
            Links::default().take(&datagram[..length]);
        }
    }
}
