#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]
//! The seccomp filters of a sandbox: which kernel surface a command can touch, and which calls are asked about. Programs
//! for the kernel's interpreter, built for this processor's architecture (x86_64, aarch64) and installed by `launch`.
//!
//! ```
//! let program = plenipo_filter::build(false);
//! assert!(program.len() < 100);
//! ```

mod program;

pub use program::{ANSWER, Instruction, QUESTION, asking, build, build_alone, build_proxied};
