//! Deltas come one by one and are drawn thirty times a second: waking the
//! screen for each of them would cost more than drawing them.

use std::ops::ControlFlow;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// How long what follows closely is gathered. Far less than a frame.
const GATHER: Duration = Duration::from_millis(10);

/// Passes on everything in its order until the sender is gone or nobody takes
/// it: the first at once, what comes right behind it together.
pub(super) fn pass_on<T>(from: &Receiver<T>, mut to: impl FnMut(T) -> ControlFlow<()>) -> ControlFlow<()> {
    while let Ok(first) = from.recv() {
        to(first)?;
        std::thread::sleep(GATHER);
        from.try_iter().try_for_each(&mut to)?;
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Instant;

    use super::*;

    #[test]
    fn everything_comes_in_its_order_and_in_few_pieces() {
        let (sender, receiver) = mpsc::channel();
        let sending = std::thread::spawn(move || {
            for number in 0..200 {
                sender.send(number).unwrap();
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        let (mut seen, mut pauses, mut last) = (Vec::new(), 0, Instant::now());
        let ended = pass_on(&receiver, |number| {
            seen.push(number);
            pauses += usize::from(last.elapsed() > GATHER / 2);
            last = Instant::now();
            ControlFlow::Continue(())
        });
        sending.join().unwrap();
        assert_eq!(ended, ControlFlow::Continue(()));
        assert_eq!(seen, (0..200).collect::<Vec<_>>());
        assert!(pauses < 100, "{pauses}");
    }

    #[test]
    fn it_ends_when_nobody_takes_it() {
        let (sender, receiver) = mpsc::channel();
        sender.send(1).unwrap();
        assert_eq!(pass_on(&receiver, |_| ControlFlow::Break(())), ControlFlow::Break(()));
    }
}
