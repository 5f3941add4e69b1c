//! Reading what `ofproto/trace` says about one frame.

/// One lookup in a flow table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// The bridge whose table was looked up.
    pub bridge: String,
    /// The table's number.
    pub table: u8,
    /// The flow's priority; `None` when nothing matched.
    pub priority: Option<u16>,
    /// The flow's cookie, 0 when it has none.
    pub cookie: u64,
    /// The match as printed, without priority and cookie.
    pub matched: String,
}

/// The translation of one frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Lookups in all flow tables of all bridges; the limit is 4,096.
    pub lookups: usize,
    /// Whether translation ran into the limit.
    pub over_limit: bool,
    /// The flows taken in table 0 of the external bridge, in order.
    pub external: Vec<Lookup>,
    /// How often the frame entered the integration bridge: once for each patch port it went to.
    pub entered: usize,
    /// Routers that would learn a binding (`put_arp` and `put_nd` are actions `controller`).
    pub learned: usize,
    /// The datapath's actions, ports by name.
    pub datapath_actions: String,
    /// The whole text.
    pub raw: String,
}

impl Trace {
    /// Reads the output of `ofproto/trace --names` on the bridge `external`.
    #[must_use]
    pub fn parse(external: &str, raw: String) -> Self {
        let mut lookups = 0;
        let mut taken = Vec::new();
        let mut entered = 0;
        let mut learned = 0;
        let mut datapath_actions = String::new();
        // Indentation of the bridge that each lookup belongs to: (columns, bridge).
        let mut bridges: Vec<(usize, String)> = Vec::new();
        for line in raw.lines() {
            let text = line.trim_start();
            let indent = line.len() - text.len();
            if let Some(name) = bridge_heading(text) {
                bridges.retain(|(column, _)| *column < indent);
                bridges.push((indent, name.to_owned()));
                entered += usize::from(name != external);
            } else if let Some(lookup) = lookup(text) {
                lookups += 1;
                // Table numbers are right-aligned: one column to the left or right of the bridge.
                let owner = bridges
                    .iter()
                    .rev()
                    .find(|(column, _)| *column <= indent)
                    .or(bridges.first());
                if let Some((_, bridge)) = owner
                    && bridge == external
                    && lookup.table == 0
                {
                    taken.push(Lookup {
                        bridge: bridge.clone(),
                        ..lookup
                    });
                }
            } else if text.starts_with("controller(") {
                learned += 1;
            } else if let Some(actions) = text.strip_prefix("Datapath actions: ") {
                datapath_actions = actions.to_owned();
            }
        }
        Self {
            lookups,
            over_limit: raw.contains("over 4096 resubmit actions"),
            external: taken,
            entered,
            learned,
            datapath_actions,
            raw,
        }
    }

    /// The priority of the first flow taken in table 0 of the external bridge.
    #[must_use]
    pub fn priority(&self) -> Option<u16> {
        self.external.first()?.priority
    }

    /// Whether the frame leaves the datapath through a port, by its name.
    #[must_use]
    pub fn outputs_to(&self, port: &str) -> bool {
        self.datapath_actions
            .split(',')
            .any(|action| action.trim_matches('"') == port)
    }
}

fn bridge_heading(text: &str) -> Option<&str> {
    text.strip_prefix("bridge(\"")?.strip_suffix("\")")
}

/// `36. reg0=0x1,metadata=0x2, priority 100, cookie 0xab`, or `0. No match.`
fn lookup(text: &str) -> Option<Lookup> {
    let (table, rest) = text.split_once(". ")?;
    let table = table.parse().ok()?;
    let (mut priority, mut cookie, mut matched) = (None, 0, "");
    for part in rest.split(", ") {
        if let Some(value) = part.strip_prefix("priority ") {
            priority = value.parse().ok();
        } else if let Some(value) = part.strip_prefix("cookie 0x") {
            cookie = u64::from_str_radix(value, 16).unwrap_or_default();
        } else if part != "No match." {
            matched = part;
        }
    }
    Some(Lookup {
        bridge: String::new(),
        table,
        priority,
        cookie,
        matched: matched.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"Flow: arp,in_port=eth1

bridge("br-ex")
---------------
 0. in_port=1,dl_dst=02:42:ac:12:00:03, priority 52, cookie 0x6691
    output:"patch-a"

    bridge("br-int")
    ----------------
         0. in_port="patch-b",vlan_tci=0x0000/0x1000, priority 100, cookie 0x12301dca
            resubmit(,8)
         8. metadata=0x4d, priority 50, cookie 0xb43700f2
            resubmit(,73)
            73. No match.
                    drop
        36. reg14=0x2, priority 0
            controller(userdata=00.00.00.01)
            >>>> over 4096 resubmit actions <<<<
    NORMAL
     -> forwarding to learned port

Final flow: unchanged
Datapath actions: userspace(pid=0,controller(reason=1,dont_send=0)),br-ex
"#;

    #[test]
    fn a_trace_is_read() {
        let trace = Trace::parse("br-ex", TEXT.to_owned());
        assert_eq!((trace.lookups, trace.entered, trace.learned), (5, 1, 1));
        assert!(trace.over_limit);
        assert_eq!(trace.priority(), Some(52));
        let [taken] = trace.external.as_slice() else {
            panic!("{:?}", trace.external);
        };
        assert_eq!(taken.cookie, 0x6691);
        assert_eq!(taken.matched, "in_port=1,dl_dst=02:42:ac:12:00:03");
        assert!(trace.outputs_to("br-ex") && !trace.outputs_to("eth1"));
    }
}
