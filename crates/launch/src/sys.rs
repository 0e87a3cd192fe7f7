//! The kernel calls that no safe crate offers. The only unsafe code of the project.
//!
//! One call a function; each says why it is sound. Everything here returns `io::Result` and knows nothing of policies.

#![expect(unsafe_code, reason = "system calls that rustix does not wrap")]

#[cfg(any(target_env = "musl", test))]
mod allocator;
mod clone;
mod descriptor;
mod filter;
mod loopback;
mod mount;
mod names;
mod network;
mod notify;
mod signal;
mod spawn;
mod standard;

#[cfg(any(target_env = "musl", test))]
pub use allocator::Allocator;
pub(crate) use clone::{Fork, Namespaces, exit_now, fork, fork_into, start_session};
pub(crate) use descriptor::{copy_inherited, take_inherited};
pub(crate) use filter::{ask_filter, install_filter, landlock_abi};
pub(crate) use loopback::raise_loopback;
pub(crate) use mount::{MountAttributes, set_mount_attributes};
pub use names::resolve_without_modules;
pub(crate) use network::{enter_network, make_network, network_of, unshare_network};
pub(crate) use notify::{Notice, go_on, install_listener, next_notice};
pub use signal::outlive_job;
pub(crate) use signal::{
    Delivery, Received, SignalMask, SignalQueue, block_signals, close_all_but, close_from, deliver,
    kill_all_others, may_close, restore_child_signal, restore_signals, stop_with_job,
    wait_for_signal,
};
pub(crate) use spawn::{spawn, spawn_in_terminal};
pub use standard::output_was_closed;
