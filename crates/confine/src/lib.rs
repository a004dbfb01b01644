//! Runs the commands of tools: confines them and ends them with everything they started.
//!
//! [`Confine`] finds out what this machine supports and creates a [`Launch`] for a
//! command. The [`supervisor`], which is this program started again, carries it out. No code
//! here is unsafe: everything that must happen between fork and exec happens in the
//! helper before it starts the command.
//!
//! Tiers: `strong` is bubblewrap with seccomp, `kernel` is Landlock with seccomp,
//! `seatbelt` is the sandbox of macOS, and `none` only keeps track of processes.

mod apply;
#[cfg(target_os = "linux")]
mod bubblewrap;
#[cfg(target_os = "linux")]
mod capabilities;
mod confine;
pub mod git;
#[cfg(target_os = "linux")]
mod landlock;
pub mod launch;
pub mod policy;
mod probe;
mod process_tree;
mod protected_copies;
pub mod protected_paths;
pub mod seatbelt;
#[cfg(target_os = "linux")]
mod seccomp;
mod self_test;
pub mod spawn_supervisor;
pub mod supervisor;

pub use confine::{Approval, Confine, ConfineSetting, Helper, RequestedAccess, TierLimit, TierUnavailable};
pub use launch::{CommandEnd, CommandInput, Launch, LaunchReport};
pub use policy::PolicyPaths;
pub use probe::MachineSupport;

/// Landlock ABIs that introduced what we need: renaming between folders, which every
/// build needs; restrictions on signals; restrictions on sockets in the file system.
pub const MIN_LANDLOCK_ABI: i32 = 2;
pub(crate) const SIGNALS_ABI: i32 = 6;
pub(crate) const UNIX_SOCKETS_ABI: i32 = 9;

/// Hides this process's memory and environment from other processes of the same user,
/// because both contain keys.
pub fn hide_this_process() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // If this fails, Landlock and seccomp still keep confined commands out.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}
