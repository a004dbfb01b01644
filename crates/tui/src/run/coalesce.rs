//! Coalesces updates. Deltas arrive one by one but are drawn thirty times a second, so waking the
//! screen for each of them would cost more than drawing them.

use std::ops::ControlFlow;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// How long updates are collected. Much less than a frame.
const COALESCE_WINDOW: Duration = Duration::from_millis(10);

/// Forwards everything in order until a side hangs up: the first item at once, the items that
/// follow closely in one batch.
pub(super) fn coalesce<T>(from: &Receiver<T>, mut to: impl FnMut(T) -> ControlFlow<()>) -> ControlFlow<()> {
    while let Ok(first) = from.recv() {
        to(first)?;
        std::thread::sleep(COALESCE_WINDOW);
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
    fn everything_arrives_in_order_and_in_few_batches() {
        let (sender, receiver) = mpsc::channel();
        let sending = std::thread::spawn(move || {
            for number in 0..200 {
                sender.send(number).unwrap();
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        let (mut seen, mut pauses, mut last) = (Vec::new(), 0, Instant::now());
        let ended = coalesce(&receiver, |number| {
            seen.push(number);
            pauses += usize::from(last.elapsed() > COALESCE_WINDOW / 2);
            last = Instant::now();
            ControlFlow::Continue(())
        });
        sending.join().unwrap();
        assert_eq!(ended, ControlFlow::Continue(()));
        assert_eq!(seen, (0..200).collect::<Vec<_>>());
        assert!(pauses < 100, "{pauses}");
    }

    #[test]
    fn it_ends_when_the_receiver_stops() {
        let (sender, receiver) = mpsc::channel();
        sender.send(1).unwrap();
        assert_eq!(coalesce(&receiver, |_| ControlFlow::Break(())), ControlFlow::Break(()));
    }
}
