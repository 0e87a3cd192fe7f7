//! How the program is linked where that is known: an optimised build for this very machine with Rust's own linker. It
//! starts in less time and memory then. Every other build is linked as usual.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Since glibc 2.36 the loader reads relocations that are packed.
const PACKED_RELOCATIONS: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=launch.ld");
    println!("cargo::rerun-if-env-changed=RUSTFLAGS");
    if !is_usual() {
        return;
    }
    for argument in arguments() {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
    if let Some(place) = unwinder() {
        println!("cargo::rustc-link-search=native={}", place.display());
    }
}

fn is_usual() -> bool {
    let is = |name: &str, value: &str| variable(name) == value;
    is("PROFILE", "release")
        && is("TARGET", "x86_64-unknown-linux-gnu")
        && is("HOST", "x86_64-unknown-linux-gnu")
        && is("CARGO_ENCODED_RUSTFLAGS", "")
        && is("RUSTC_LINKER", "")
        && has_own_linker()
}

/// A directory in which what asks for the unwinder's shared library finds the compiler's static one: a library less to
/// load. (A panic ends the program, so nothing is unwound in common with other libraries.)
fn unwinder() -> Option<PathBuf> {
    let path = |name: &str| {
        let path = said("cc", &[&format!("-print-file-name={name}")])?;
        let path = PathBuf::from(path.trim());
        path.is_absolute().then_some(path) // only the name where there is none
    };
    let (unwinder, rest) = (path("libgcc_eh.a")?, path("libgcc.a")?);
    let place = PathBuf::from(variable("OUT_DIR")).join("unwinder");
    fs::create_dir_all(&place).ok()?;
    let script = format!("GROUP ( {} {} )\n", unwinder.display(), rest.display());
    fs::write(place.join("libgcc_s.a"), script).ok()?;
    Some(place)
}

fn arguments() -> Vec<String> {
    let layout = Path::new(&variable("CARGO_MANIFEST_DIR")).join("launch.ld");
    let mut arguments = vec![format!("-Wl,-T,{}", layout.display())];
    if glibc().is_some_and(|version| version >= PACKED_RELOCATIONS) {
        arguments.push("-Wl,-z,pack-relative-relocs".to_owned());
    }
    arguments
}

#[expect(clippy::disallowed_methods, reason = "a build script is told everything so")]
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// Whether `rustc` brings a linker of its own for this target and uses it: since 1.90.
fn has_own_linker() -> bool {
    said(&variable("RUSTC"), &["--version"])
        .and_then(|text| numbers(text.split_whitespace().nth(1)?))
        .is_some_and(|version| version >= (1, 90))
}

fn glibc() -> Option<(u32, u32)> {
    numbers(said("getconf", &["GNU_LIBC_VERSION"])?.trim().strip_prefix("glibc ")?)
}

fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

#[expect(clippy::disallowed_methods, reason = "only programs of the build are asked")]
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    String::from_utf8(output.stdout).ok()
}
