//! Reading what a system call names from the memory of the thread that makes it; see proc_pid_mem(5).

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// As long as the kernel takes them (PATH_MAX).
const LONGEST_PATH: usize = 4096;
const PAGE: u64 = 4096;

/// The memory of one thread, which waits.
pub(crate) struct Memory {
    thread: u32,
    file: File,
}

impl Memory {
    pub(crate) fn of(thread: u32) -> io::Result<Self> {
        Ok(Self { thread, file: File::open(format!("/proc/{thread}/mem"))? })
    }

    pub(crate) fn bytes(&self, address: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, address)?;
        Ok(bytes)
    }

    /// A path that ends with a NUL, made absolute by the directory that it is about. `None` if it is empty: then the
    /// descriptor is meant.
    pub(crate) fn path(&self, address: u64, directory: Option<i32>) -> io::Result<Option<PathBuf>> {
        let text = self.text(address)?;
        if text.is_empty() {
            return Ok(None);
        }
        let path = PathBuf::from(OsString::from_vec(text));
        if path.is_absolute() {
            return Ok(Some(path));
        }
        let thread = self.thread;
        let link = match directory {
            Some(descriptor) => format!("/proc/{thread}/fd/{descriptor}"),
            None => format!("/proc/{thread}/cwd"),
        };
        Ok(Some(std::fs::read_link(link)?.join(path)))
    }

    /// Page by page: what follows the string may not be mapped.
    fn text(&self, address: u64) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        let mut at = address;
        while text.len() < LONGEST_PATH {
            let rest = usize::try_from(PAGE - at % PAGE).unwrap_or(1);
            let piece = self.bytes(at, rest.min(256))?;
            if let Some(end) = piece.iter().position(|byte| *byte == 0) {
                text.extend(piece.into_iter().take(end));
                return Ok(text);
            }
            at = at.saturating_add(u64::try_from(piece.len()).unwrap_or(PAGE));
            text.extend(piece);
        }
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// Without `.` and doubled slashes; `..` is kept, because it goes up from where a link leads.
pub(crate) fn tidy(path: &Path) -> PathBuf {
    path.components().collect()
}
