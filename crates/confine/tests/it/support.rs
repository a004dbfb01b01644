//! A working directory, a folder outside it, and the helper.

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use aside_confine::launch::Mechanism;
use aside_confine::policy::Policy;
use aside_confine::{
    Approval, CommandInput, Confine, ConfineSetting, Helper, LaunchReport, PolicyPaths, RequestedAccess, launch,
    spawn_supervisor,
};

use crate::folder_outside::{FolderOutside, folder_outside};

pub(crate) fn helper() -> Helper {
    Helper::at(env!("CARGO_BIN_EXE_aside-confine"))
}

pub(crate) struct SandboxFolders(pub(crate) PathBuf, #[expect(dead_code, reason = "removed last")] FolderOutside);

impl SandboxFolders {
    /// Not in a temporary folder, because commands may write there.
    pub(crate) fn new(name: &str) -> SandboxFolders {
        let outside = folder_outside(env!("CARGO_TARGET_TMPDIR"));
        let path = outside.join(format!("{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        for folder in ["root", "outside", "home/.ssh"] {
            fs::create_dir_all(path.join(folder)).unwrap();
        }
        fs::write(path.join("outside/file"), "old\n").unwrap();
        fs::write(path.join("home/.ssh/id"), "secret\n").unwrap();
        SandboxFolders(fs::canonicalize(path).unwrap(), outside)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    pub(crate) fn paths(&self) -> PolicyPaths {
        PolicyPaths {
            root: self.root(),
            home: Some(self.0.join("home")),
            temp: vec!["/tmp".into()],
            ..PolicyPaths::default()
        }
    }

    pub(crate) fn confine(&self) -> Confine {
        self.confine_in(self.paths())
    }

    pub(crate) fn confine_in(&self, paths: PolicyPaths) -> Confine {
        Confine::new(helper(), ConfineSetting::Auto, paths)
    }
}

impl Drop for SandboxFolders {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The mechanisms that this machine supports, the best first; `None` is always last.
pub(crate) fn mechanisms(confine: &Confine) -> Vec<Mechanism> {
    let found = confine.support();
    let strong = found.bubblewrap.iter().map(|path| Mechanism::Bubblewrap { program: path.as_path().into() });
    let kernel = found.landlock.iter().map(|abi| Mechanism::Kernel { abi: *abi });
    strong.chain(kernel).chain([Mechanism::None]).collect()
}

/// Runs a shell command confined by this mechanism.
pub(crate) fn shell(confine: &Confine, mechanism: &Mechanism, line: &str) -> (LaunchReport, String) {
    shell_with_access(confine, mechanism, line, RequestedAccess::Standard)
}

pub(crate) fn shell_with_access(
    confine: &Confine,
    mechanism: &Mechanism,
    line: &str,
    access: RequestedAccess,
) -> (LaunchReport, String) {
    let mut launch = confine.launch("sh", &["-c", line], access, Approval::Automatic, CommandInput::Empty).unwrap();
    launch.mechanism = mechanism.clone();
    if *mechanism == Mechanism::None {
        launch.policy = Policy::default();
    }
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = confine.helper().command();
    command.stdout(writer.try_clone().unwrap()).stderr(writer);
    let (mut child, mut control) = spawn_supervisor::start(&mut command, &launch).unwrap();
    drop(command);
    let mut output = String::new();
    reader.read_to_string(&mut output).unwrap();
    let report = launch::read_frame(&mut control).unwrap();
    child.wait().unwrap();
    (report, output)
}
