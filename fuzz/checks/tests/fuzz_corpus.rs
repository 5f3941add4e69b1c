//! Every file of the fuzz targets' corpus, through what the targets do with it.

use std::{
    collections::BTreeSet,
    fs,
    panic::catch_unwind,
    path::{Path, PathBuf},
};

use neighsteer_fuzz_checks::{TARGETS, Target};

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| {
        panic!("cannot read {}: {error}", folder.display());
    });
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Runs a target over the files of a folder; the files at which it panicked, and how many there are.
fn replay(target: Target, folder: &Path) -> (Vec<String>, usize) {
    let files = names(folder);
    let panicked = files.iter().filter(|name| {
        let data = fs::read(folder.join(name.as_str())).unwrap();
        catch_unwind(|| (target.run)(&data)).is_err()
    });
    (panicked.cloned().collect(), files.len())
}

#[test]
fn every_file_of_the_corpus_keeps_what_its_target_demands() {
    for target in TARGETS {
        let folder = fuzz_folder().join("corpus").join(target.name);
        let (panicked, files) = replay(target, &folder);
        assert!(files > 0, "{} is empty", folder.display());
        assert!(
            panicked.is_empty(),
            "{}: {panicked:?} of {files}",
            target.name
        );
        println!("{}: {files} files", target.name);
    }
}

#[test]
fn a_file_at_which_a_target_panics_is_found() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("good"), "a").unwrap();
    fs::write(folder.path().join("bad"), "b").unwrap();
    let target = Target {
        name: "choosy",
        run: |data| assert_eq!(data, b"a"),
    };
    assert_eq!(replay(target, folder.path()), (vec!["bad".to_owned()], 2));
}

#[test]
fn each_target_has_a_program_and_a_corpus_and_nothing_else_has() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|it| it.name.to_owned()).collect();
    let programs = names(&fuzz_folder().join("fuzz_targets"));
    let programs: BTreeSet<String> = programs
        .iter()
        .map(|name| name.strip_suffix(".rs").unwrap_or(name).to_owned())
        .collect();
    assert_eq!(programs, targets);
    assert_eq!(names(&fuzz_folder().join("corpus")), targets);
    let manifest = fs::read_to_string(fuzz_folder().join("Cargo.toml")).unwrap();
    for target in targets {
        let path = format!("path = \"fuzz_targets/{target}.rs\"");
        assert!(manifest.contains(&path), "{target}");
        let program = fuzz_folder().join(format!("fuzz_targets/{target}.rs"));
        let program = fs::read_to_string(program).unwrap();
        assert!(program.contains(&format!("\"{target}\"")), "{target}");
    }
}
