//! Processes that tools start: confined, and gone with everything they started.
//!
//! [`Confine`] knows what this machine can do and makes a [`Launch`] of a command;
//! the [`helper`], which is this program started again, carries it out. Nothing in
//! here is unsafe: what must happen between fork and exec happens in the helper,
//! before it starts anything.
//!
//! Tiers: `strong` is bubblewrap with seccomp, `kernel` is Landlock with seccomp,
//! `seatbelt` is macOS's own, `none` only keeps processes together.

mod attempt;
mod barrier;
#[cfg(target_os = "linux")]
mod bubblewrap;
#[cfg(target_os = "linux")]
mod capabilities;
mod confine;
pub mod git;
mod guard;
pub mod helper;
#[cfg(target_os = "linux")]
mod landlock;
pub mod launch;
pub mod policy;
mod probe;
pub mod protected;
pub mod run;
pub mod seatbelt;
#[cfg(target_os = "linux")]
mod seccomp;
mod tree;

pub use confine::{Approval, Confine, Helper, Limit, Refused, Want, Wish};
pub use launch::{End, Input, Launch, Report};
pub use policy::Places;
pub use probe::Found;

/// ABIs of Landlock from which something holds: renaming between folders, which
/// every build needs; signals; sockets in the file system.
pub const OLDEST_LANDLOCK: i32 = 2;
pub(crate) const SIGNALS: i32 = 6;
pub(crate) const UNIX_SOCKETS: i32 = 9;

/// Keeps this process's memory and environment from others of the same user: keys
/// are in both.
pub fn hide_this_process() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Without it Landlock and seccomp still keep confined commands out.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}
