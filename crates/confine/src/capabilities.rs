//! What root may do.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// What a build as root needs. Above all it is not SYS_ADMIN and PERFMON, by which
/// root reads the environment of any process, keys included.
pub(crate) const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::KILL);

/// Their names, as bubblewrap knows them.
pub(crate) const KEPT_NAMES: [&str; 7] =
    ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_SETUID", "CAP_SETGID", "CAP_KILL"];

/// Takes all others from this thread and from what it starts.
pub(crate) fn drop_all_others() -> Result<(), String> {
    let said = |error: rustix::io::Errno| format!("the capabilities cannot be dropped: {error}");
    let held = capabilities(None).map_err(said)?;
    if held.permitted.is_empty() {
        return Ok(());
    }
    // Without `no_new_privs`, which follows, this would be what counts. Not every
    // root may do it.
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    let _ = rustix::thread::clear_ambient_capability_set();
    let sets = CapabilitySets {
        effective: held.effective & KEPT,
        permitted: held.permitted & KEPT,
        inheritable: held.inheritable & KEPT,
    };
    set_capabilities(None, sets).map_err(said)
}
