//! A folder to work in, one beside it that is out of bounds, and the helper.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use aside_confine::launch::Barrier;
use aside_confine::policy::Policy;
use aside_confine::{Approval, Confine, Helper, Input, Places, Report, Want, Wish, launch, run};

pub(crate) fn helper() -> Helper {
    Helper::at(env!("CARGO_BIN_EXE_aside-confine"))
}

pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    /// Not below a folder for temporary files, which is writable for commands.
    pub(crate) fn new(name: &str) -> Scratch {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        for folder in ["root", "outside", "home/.ssh"] {
            fs::create_dir_all(path.join(folder)).unwrap();
        }
        fs::write(path.join("outside/file"), "old\n").unwrap();
        fs::write(path.join("home/.ssh/id"), "secret\n").unwrap();
        Scratch(fs::canonicalize(path).unwrap())
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    pub(crate) fn places(&self) -> Places {
        Places { root: self.root(), home: Some(self.0.join("home")), temp: vec!["/tmp".into()], ..Places::default() }
    }

    pub(crate) fn confine(&self) -> Confine {
        self.confine_in(self.places())
    }

    pub(crate) fn confine_in(&self, places: Places) -> Confine {
        Confine::new(helper(), Wish::Auto, places)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The barriers that this machine has, the best first, and always none.
pub(crate) fn barriers(confine: &Confine) -> Vec<Barrier> {
    let found = confine.found();
    let strong = found.bubblewrap.iter().map(|path| Barrier::Bubblewrap { program: path.as_path().into() });
    let kernel = found.landlock.iter().map(|abi| Barrier::Kernel { abi: *abi });
    strong.chain(kernel).chain([Barrier::None]).collect()
}

/// Runs a line of shell behind the barrier.
pub(crate) fn shell(confine: &Confine, barrier: &Barrier, line: &str) -> (Report, String) {
    shell_wanting(confine, barrier, line, Want::Usual)
}

pub(crate) fn shell_wanting(confine: &Confine, barrier: &Barrier, line: &str, want: Want) -> (Report, String) {
    let mut launch = confine.launch("sh", &["-c", line], want, Approval::Standing, Input::Nothing).unwrap();
    launch.barrier = barrier.clone();
    if *barrier == Barrier::None {
        launch.policy = Policy::default();
    }
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = confine.helper().command();
    command.stdout(writer.try_clone().unwrap()).stderr(writer);
    let (mut child, mut control) = run::start(&mut command, &launch).unwrap();
    drop(command);
    let mut output = String::new();
    reader.read_to_string(&mut output).unwrap();
    let report = launch::read(&mut control).unwrap();
    child.wait().unwrap();
    (report, output)
}
