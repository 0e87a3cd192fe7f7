//! What the tests of every crate share: directory trees an ordinary user can reach, another user to
//! run as, the built binary, listeners that count what arrives, deadlines, process look-ups, and
//! skips that are counted.
//!
//! Not for production code: helpers here panic with a sentence when the test's own ground is
//! missing, because a test that cannot be set up has failed. Nothing here sleeps for a fixed time.
//!
//! ```
//! use plenipo_testkit::{Fixture, Listener};
//!
//! let fixture = Fixture::new();
//! let note = fixture.file("work/note.txt", "hello");
//! assert_eq!(fixture.read("work/note.txt").as_deref(), Some("hello"));
//! assert!(note.starts_with(fixture.path()));
//!
//! let listener = Listener::tcp();
//! std::net::TcpStream::connect(listener.socket_address())?;
//! assert_eq!(listener.count(), 1);
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test support: a fixture that cannot be made is a failed test"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "test support starts processes and reads the environment of the test run"
)]

mod binary;
mod fixture;
mod fuzz;
mod listener;
mod postgres;
mod process;
mod require;
mod secret_service;
mod user;
mod wait;

pub use binary::{WorldReadable, built_binary, find_tool, peers, world_readable_copy};
pub use fixture::Fixture;
pub use fuzz::{Choices, Fuzz};
pub use listener::Listener;
pub use postgres::PostgresCluster;
pub use process::{ChildGuard, PidGuard, Process, processes_with_marker};
pub use require::requires;
pub use secret_service::SecretService;
pub use user::{OrdinaryUser, as_user, is_root, ordinary_user};
pub use wait::Deadline;
