//! Decides whether to query the store. While it does not answer, requests continue
//! without it at once, and only one at intervals tries again.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::error::StoreError;

/// The first and the longest pause before the store is queried again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Lets reads through to the store, each for a limited time.
pub(crate) struct ReadGate {
    deadline: Duration,
    /// None while the store answers.
    outage: Mutex<Option<Outage>>,
}

struct Outage {
    next_try: Instant,
    pause: Duration,
}

impl ReadGate {
    pub(crate) fn new(deadline: Duration) -> ReadGate {
        ReadGate { deadline, outage: Mutex::new(None) }
    }

    fn outage(&self) -> MutexGuard<'_, Option<Outage>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last read failed.
    pub(crate) fn is_down(&self) -> bool {
        self.outage().is_some()
    }

    /// Asks the store, unless it did not answer a moment ago.
    pub(crate) async fn ask<T>(&self, read: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        if !self.may_try() {
            return Err(StoreError::Down("it did not answer a moment ago".to_owned()));
        }
        let answer = timeout(self.deadline, read)
            .await
            .unwrap_or_else(|_| Err(StoreError::Down(format!("no answer within {} ms", self.deadline.as_millis()))));
        match &answer {
            Err(error) if error.is_down() => self.went_down(),
            Ok(_) | Err(_) => self.reopen(),
        }
        answer
    }

    /// The store answered.
    pub(crate) fn reopen(&self) {
        *self.outage() = None;
    }

    /// During an outage, one read at a time tries.
    fn may_try(&self) -> bool {
        let mut outage = self.outage();
        let Some(outage) = outage.as_mut() else { return true };
        let now = Instant::now();
        let is_due = now >= outage.next_try;
        if is_due {
            outage.next_try = now + self.deadline;
        }
        is_due
    }

    fn went_down(&self) {
        let mut outage = self.outage();
        let pause = outage.as_ref().map_or(FIRST_PAUSE, |outage| (outage.pause * 2).min(LONGEST_PAUSE));
        *outage = Some(Outage { next_try: Instant::now() + pause, pause });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn g7_only_one_request_waits_for_a_store_that_hangs() {
        let gate = ReadGate::new(Duration::from_secs(3));
        let hang = || std::future::pending::<Result<(), StoreError>>();
        let began = Instant::now();
        assert!(gate.ask(hang()).await.is_err());
        assert_eq!((began.elapsed().as_secs(), gate.is_down()), (3, true));
        for _ in 0..100 {
            assert!(gate.ask(hang()).await.is_err());
        }
        assert_eq!(began.elapsed().as_secs(), 3, "nobody else waits");
        tokio::time::sleep(FIRST_PAUSE).await;
        assert_eq!(gate.ask(async { Ok(7) }).await, Ok(7), "then one tries");
        assert!(!gate.is_down());
        assert_eq!(gate.ask(async { Ok(8) }).await, Ok(8));
    }

    #[tokio::test(start_paused = true)]
    async fn g7_a_store_that_answers_with_an_error_of_ours_is_not_down() {
        let gate = ReadGate::new(Duration::from_secs(3));
        assert_eq!(gate.ask(async { Err::<(), _>(StoreError::WrongKey) }).await, Err(StoreError::WrongKey));
        assert!(!gate.is_down());
    }
}
