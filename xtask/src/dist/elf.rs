//! Whether an executable is what a release has to be: ELF, at a fixed address, without a dynamic loader.

use crate::run::{Failure, Outcome};

const MAGIC: &[u8] = b"\x7fELF\x02\x01"; // 64 bits, little endian
const AT_A_FIXED_ADDRESS: u64 = 2; // ET_EXEC
const LOADER: u64 = 3; // PT_INTERP
const PROGRAM_HEADERS: usize = 32;
const PROGRAM_HEADER_SIZE: usize = 54;
const PROGRAM_HEADER_COUNT: usize = 56;

/// See elf(5).
pub(super) fn check_static(file: &[u8]) -> Outcome {
    let refuse = |why: &str| Err(Failure::new(format!("the built executable {why}")));
    if !file.starts_with(MAGIC) {
        return refuse("is not a 64-bit little-endian ELF file");
    }
    let number = |at: usize, size: usize| {
        let bytes = file.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    if number(16, 2) != Some(AT_A_FIXED_ADDRESS) {
        return refuse("is relocated at its start");
    }
    let headers = || {
        let first = usize::try_from(number(PROGRAM_HEADERS, 8)?).ok()?;
        let size = usize::try_from(number(PROGRAM_HEADER_SIZE, 2)?).ok()?;
        let count = usize::try_from(number(PROGRAM_HEADER_COUNT, 2)?).ok()?;
        (0..count).map(|index| number(first + index * size, 4)).collect::<Option<Vec<u64>>>()
    };
    match headers() {
        None => refuse("has no program headers"),
        Some(kinds) if kinds.contains(&LOADER) => refuse("needs a dynamic loader"),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with one program header of this kind behind it.
    fn file(kind: u8, program_header: u8) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(MAGIC);
        bytes[16] = kind;
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64] = program_header;
        bytes
    }

    #[test]
    fn a_loader_or_a_relocation_is_found() {
        assert!(check_static(&file(2, 1)).is_ok());
        let said = |file: &[u8]| check_static(file).unwrap_err().to_string();
        assert!(said(&file(2, 3)).ends_with("needs a dynamic loader"));
        assert!(said(&file(3, 1)).ends_with("is relocated at its start"));
        assert!(said(b"#!/bin/sh").contains("ELF"));
        assert!(said(&file(2, 1)[..60]).ends_with("has no program headers"));
    }

    #[test]
    fn the_tests_own_executable_is_not_static() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(check_static(&own).is_err());
    }
}
