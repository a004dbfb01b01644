//! The thread that highlights code. It begins with the first code there is to
//! show: the grammars take longer to load than a frame may.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use super::Inbox;
use crate::app::Msg;
use crate::syntax::Highlighter;
use crate::text::light::{Job, Lit, Outcome};

/// A block that keeps it busy for longer stays plain.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) struct Lamp {
    inbox: Sender<Inbox>,
    jobs: Option<Sender<Job>>,
}

impl Lamp {
    pub(super) fn new(inbox: Sender<Inbox>) -> Lamp {
        Lamp { inbox, jobs: None }
    }

    pub(super) fn send(&mut self, job: Job) {
        let jobs = self.jobs.get_or_insert_with(|| {
            let (sender, jobs) = mpsc::channel();
            let inbox = self.inbox.clone();
            std::thread::spawn(move || work(&jobs, &inbox));
            sender
        });
        // Without its thread code is plain, and nothing else is missing.
        jobs.send(job).ok();
    }
}

fn work(jobs: &Receiver<Job>, inbox: &Sender<Inbox>) {
    let highlighter = Highlighter::new();
    for job in jobs {
        let (began, ticket) = (Instant::now(), job.ticket);
        let mut lit = highlighter.work(job);
        if began.elapsed() > PATIENCE {
            lit = Lit { ticket, outcome: Outcome::Plain };
        }
        if inbox.send(Inbox::Msg(Msg::Lit(Box::new(lit)))).is_err() {
            return;
        }
    }
}
