//! A verdict's counters.

use aya_ebpf::{
    bindings::BPF_NOEXIST, btf_maps::PerCpuHashMap, helpers::bpf_ktime_get_coarse_ns,
    macros::btf_map,
};
use neighsteer_common::{
    Notes, Verdict,
    abi::{
        CHECKS_MAX_ENTRIES, COUNTERS_MAX_ENTRIES, CheckCounts, CheckKey, CounterKey, CounterValue,
    },
};

#[btf_map]
static COUNTERS: PerCpuHashMap<CounterKey, CounterValue, COUNTERS_MAX_ENTRIES> =
    PerCpuHashMap::new();

#[btf_map]
static CHECKS: PerCpuHashMap<CheckKey, CheckCounts, CHECKS_MAX_ENTRIES> = PerCpuHashMap::new();

/// Counts one frame of `length` bytes.
#[inline(always)]
pub fn count(interface_index: u32, direction: u8, verdict: Verdict, length: u64) {
    let key = CounterKey {
        interface_index,
        direction,
        kind: verdict.kind as u8,
        decision: verdict.decision as u8,
        reserved: 0,
    };
    // SAFETY: a helper without arguments.
    let now = unsafe { bpf_ktime_get_coarse_ns() };
    if let Some(value) = COUNTERS.get_ptr_mut(key) {
        // SAFETY: the pointer is this CPU's value, and no other program runs here meanwhile.
        unsafe {
            (*value).packets += 1;
            (*value).bytes += length;
            (*value).last_seen_ns = now;
        }
        return;
    }
    let first = CounterValue {
        packets: 1,
        bytes: length,
        last_seen_ns: now,
    };
    if COUNTERS.insert(key, first, u64::from(BPF_NOEXIST)).is_err()
        && let Some(value) = COUNTERS.get_ptr_mut(key)
    {
        // Another CPU made the entry in between.
        // SAFETY: as above.
        unsafe {
            (*value).packets += 1;
            (*value).bytes += length;
            (*value).last_seen_ns = now;
        }
    }
}

/// Counts the checks that one frame failed.
#[inline(always)]
pub fn count_failed(interface_index: u32, direction: u8, notes: Notes, dropped: bool) {
    let key = CheckKey {
        interface_index,
        direction,
        reserved: [0; 3],
    };
    if let Some(counts) = CHECKS.get_ptr_mut(key) {
        // SAFETY: the pointer is this CPU's value, and no other program runs here meanwhile.
        unsafe { (*counts).count(notes, dropped) };
        return;
    }
    let mut first = CheckCounts::default();
    first.count(notes, dropped);
    if CHECKS.insert(key, first, u64::from(BPF_NOEXIST)).is_err()
        && let Some(counts) = CHECKS.get_ptr_mut(key)
    {
        // Another CPU made the entry in between.
        // SAFETY: as above.
        unsafe { (*counts).count(notes, dropped) };
    }
}
