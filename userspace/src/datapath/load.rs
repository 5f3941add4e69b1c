//! Loads the eBPF object.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use aya::{
    Ebpf, EbpfError, EbpfLoader,
    maps::{MapData, MapError, MapInfo},
    programs::{Program, ProgramError, SchedClassifier, Xdp},
};
use neighsteer_common::abi::{self, Settings};
use nix::errno::Errno;

use super::error::{AttachError, MapShape, errno_of, is_permission};

/// The object that this binary carries.
pub static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("NEIGHSTEER_BPF_OBJECT_FILE"));

/// What loading and attaching need.
pub(crate) const CAPABILITIES: &str = "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN";
/// `CAP_NET_ADMIN`.
const CAP_NET_ADMIN: u32 = 12;
/// `CAP_SYS_ADMIN`, which stands for the two below.
const CAP_SYS_ADMIN: u32 = 21;
/// `CAP_PERFMON`: without it the verifier refuses sums of a packet pointer and a variable.
const CAP_PERFMON: u32 = 38;
/// `CAP_BPF`.
const CAP_BPF: u32 = 39;

/// Says what is missing before anything is tried.
///
/// # Errors
/// Where the process lacks capabilities, or the kernel BTF.
pub(crate) fn check_preconditions() -> Result<(), AttachError> {
    if !has_capabilities() {
        return Err(AttachError::Permission {
            missing: CAPABILITIES,
        });
    }
    if aya::features().btf().is_none() {
        return Err(AttachError::NoBtf);
    }
    Ok(())
}

/// Whether this process has the capabilities; where that cannot be read, the kernel will say.
pub(crate) fn has_capabilities() -> bool {
    fs::read_to_string("/proc/thread-self/status")
        .ok()
        .and_then(|status| effective_capabilities(&status))
        .is_none_or(|effective| {
            let has = |capability: u32| effective >> capability & 1 == 1;
            has(CAP_NET_ADMIN) && (has(CAP_SYS_ADMIN) || has(CAP_BPF) && has(CAP_PERFMON))
        })
}

/// The bits of `CapEff` in a status file of `/proc`.
fn effective_capabilities(status: &str) -> Option<u64> {
    let digits = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(digits.trim(), 16).ok()
}

/// Creates the maps of an object and makes its programs ready to be loaded.
///
/// With `kept`, names of maps and their pins of a former load, the programs go on counting there.
///
/// # Errors
/// Where the object is of another ABI, the pin of another shape, or a map cannot be created.
pub fn load(
    object: &[u8],
    settings: &Settings,
    kept: &[(&'static str, PathBuf)],
) -> Result<Ebpf, AttachError> {
    check_abi(object)?;
    let mut loader = EbpfLoader::new();
    loader.override_global(abi::SETTINGS, settings, true);
    for (name, pin) in kept {
        check_shape(object, name, pin)?;
        loader.map_pin_path(name, pin);
    }
    loader.load(object).map_err(|error| {
        if is_permission(&error) {
            AttachError::Permission {
                missing: CAPABILITIES,
            }
        } else {
            AttachError::Object(error)
        }
    })
}

/// Whether the object has the settings of our ABI version.
fn check_abi(object: &[u8]) -> Result<(), AttachError> {
    let settings = [0; size_of::<Settings>()];
    parse(object)?
        .patch_map_data(HashMap::from([(abi::SETTINGS, (&settings[..], true))]))
        .map_err(|_| AttachError::ObjectAbi {
            wanted: abi::VERSION,
        })
}

/// Compares a pinned map with the one that the object defines.
fn check_shape(object: &[u8], name: &'static str, pin: &Path) -> Result<(), AttachError> {
    let pinned = shape_of_pin(pin).map_err(|source| AttachError::Map {
        path: pin.to_owned(),
        source,
    })?;
    let parsed = parse(object)?;
    let map = parsed.maps.get(name).ok_or(AttachError::Missing { name })?;
    let wanted = MapShape {
        map_type: map.map_type(),
        key_size: map.key_size(),
        value_size: map.value_size(),
        max_entries: map.max_entries(),
    };
    if pinned == wanted {
        Ok(())
    } else {
        Err(AttachError::CountersShape {
            path: pin.to_owned(),
            pinned,
            wanted,
        })
    }
}

fn parse(object: &[u8]) -> Result<aya_obj::Object, AttachError> {
    aya_obj::Object::parse(object).map_err(|error| AttachError::Object(EbpfError::from(error)))
}

/// The shape of a pinned map.
pub(crate) fn shape_of_pin(pin: &Path) -> Result<MapShape, MapError> {
    let info: MapInfo = MapData::from_pin(pin)?.info()?;
    Ok(MapShape {
        map_type: info.map_type()? as u32,
        key_size: info.key_size(),
        value_size: info.value_size(),
        max_entries: info.max_entries(),
    })
}

/// Loads the tc program.
///
/// # Errors
/// Where the object has none, or the kernel refuses it.
pub fn tc_program<'a>(
    ebpf: &'a mut Ebpf,
    name: &'static str,
) -> Result<&'a mut SchedClassifier, AttachError> {
    let program: &mut SchedClassifier = program(ebpf, name)?;
    program.load().map_err(|source| refused(name, source))?;
    Ok(program)
}

/// Loads the XDP program.
///
/// # Errors
/// Where the object has none, or the kernel refuses it.
pub fn xdp_program<'a>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<&'a mut Xdp, AttachError> {
    let program: &mut Xdp = program(ebpf, name)?;
    program.load().map_err(|source| refused(name, source))?;
    Ok(program)
}

fn program<'a, P>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<P, AttachError>
where
    P: TryFrom<&'a mut Program, Error = ProgramError>,
{
    ebpf.program_mut(name)
        .ok_or(AttachError::Missing { name })?
        .try_into()
        .map_err(|source| refused(name, source))
}

fn refused(program: &'static str, source: ProgramError) -> AttachError {
    // EACCES is the verifier's; EPERM a missing capability.
    if errno_of(&source) == Some(Errno::EPERM) {
        AttachError::Permission {
            missing: CAPABILITIES,
        }
    } else {
        AttachError::Program { program, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effective_capabilities_are_read_from_the_status_file() {
        let status = "Name:\tx\nCapInh:\t0000000000000000\nCapEff:\t000001ffffffffff\n";
        assert_eq!(effective_capabilities(status), Some(0x1ff_ffff_ffff));
        assert_eq!(effective_capabilities("Name:\tx\n"), None);
    }

    #[test]
    fn the_embedded_object_is_of_our_abi_and_shape() {
        check_abi(OBJECT).unwrap();
        let object = parse(OBJECT).unwrap();
        let counters = object.maps.get(abi::COUNTERS).unwrap();
        assert_eq!(counters.key_size() as usize, size_of::<abi::CounterKey>());
        assert_eq!(
            counters.value_size() as usize,
            size_of::<abi::CounterValue>()
        );
        let checks = object.maps.get(abi::CHECKS).unwrap();
        assert_eq!(checks.key_size() as usize, size_of::<abi::CheckKey>());
        assert_eq!(checks.value_size() as usize, size_of::<abi::CheckCounts>());
        assert_eq!(object.license.as_bytes(), b"Dual MIT/GPL");
        for program in [abi::TC_INGRESS, abi::XDP_INGRESS] {
            assert!(object.programs.contains_key(program), "{program}");
        }
        assert_eq!(object.programs.len(), 2);
    }

    #[test]
    fn an_object_of_another_version_is_refused() {
        let name = abi::SETTINGS.as_bytes();
        let mut object = OBJECT.to_vec();
        let starts = 0..object.len() - name.len();
        let found: Vec<_> = starts
            .filter(|start| object[*start..].starts_with(name))
            .collect();
        assert!(!found.is_empty());
        for start in found {
            object[start] = b'X';
        }
        let error = load(&object, &Settings::default(), &[]).unwrap_err();
        assert!(matches!(error, AttachError::ObjectAbi { .. }), "{error}");
    }
}
