//! What confined commands can do, what they cannot, and that nothing is left.

use std::fs;

use aside_confine::End;
use aside_confine::launch::Barrier;

use crate::support::{Scratch, barriers, shell};

#[test]
fn k1_writes_stay_inside_and_work_goes_on() {
    let scratch = Scratch::new("inside");
    let confine = scratch.confine();
    for barrier in barriers(&confine) {
        let (report, said) =
            shell(&confine, &barrier, "echo one > a; mkdir -p b; mv a b/a; cat b/a; echo x >/dev/null; exit 3");
        assert_eq!((report.end, said.as_str()), (End::Exited(3), "one\n"), "{barrier:?}");
        let (report, said) = shell(&confine, &barrier, "echo new > ../outside/file");
        let after = fs::read_to_string(scratch.0.join("outside/file")).unwrap();
        match barrier {
            Barrier::None => assert_eq!((report.end, after.as_str()), (End::Exited(0), "new\n")),
            Barrier::Kernel { .. } | Barrier::Bubblewrap { .. } | Barrier::Seatbelt => {
                assert_ne!(report.end, End::Exited(0), "{barrier:?}: {said}");
                assert_eq!(after, "old\n", "{barrier:?}");
            }
        }
        let (_, said) = shell(&confine, &barrier, "cat ../home/.ssh/id");
        assert_eq!(said.contains("secret"), barrier == Barrier::None, "{barrier:?}: {said}");
    }
}
