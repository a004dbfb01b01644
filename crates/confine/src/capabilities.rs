//! Drops capabilities of root.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// What a build as root needs. In particular it excludes SYS_ADMIN and PERFMON, with
/// which root can read any process's environment, including keys.
pub(crate) const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::KILL);

/// Their names for bubblewrap's arguments.
pub(crate) const KEPT_NAMES: [&str; 7] =
    ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_SETUID", "CAP_SETGID", "CAP_KILL"];

/// Drops all other capabilities from this thread and everything it starts.
pub(crate) fn drop_all_others() -> Result<(), String> {
    let describe = |error: rustix::io::Errno| format!("the capabilities cannot be dropped: {error}");
    let held = capabilities(None).map_err(describe)?;
    if held.permitted.is_empty() {
        return Ok(());
    }
    // The bounding set would matter only without `no_new_privs`, which is set later, and
    // not every root may change it.
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    let _ = rustix::thread::clear_ambient_capability_set();
    let sets = CapabilitySets {
        effective: held.effective & KEPT,
        permitted: held.permitted & KEPT,
        inheritable: held.inheritable & KEPT,
    };
    set_capabilities(None, sets).map_err(describe)
}
