//! The highlighter thread. It starts with the first code to show, because loading the grammars
//! takes longer than a frame.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use super::LoopEvent;
use crate::app::Msg;
use crate::highlighter::Highlighter;
use crate::text::highlight_jobs::{HighlightJob, HighlightOutcome, HighlightResult};

/// A block that takes longer stays plain.
const TIME_LIMIT: Duration = Duration::from_secs(3);

pub(super) struct HighlightThread {
    inbox: Sender<LoopEvent>,
    jobs: Option<Sender<HighlightJob>>,
}

impl HighlightThread {
    pub(super) fn new(inbox: Sender<LoopEvent>) -> HighlightThread {
        HighlightThread { inbox, jobs: None }
    }

    pub(super) fn send(&mut self, job: HighlightJob) {
        let jobs = self.jobs.get_or_insert_with(|| {
            let (sender, jobs) = mpsc::channel();
            let inbox = self.inbox.clone();
            std::thread::spawn(move || run_jobs(&jobs, &inbox));
            sender
        });
        // Without the thread, code stays plain and everything else works.
        jobs.send(job).ok();
    }
}

fn run_jobs(jobs: &Receiver<HighlightJob>, inbox: &Sender<LoopEvent>) {
    let highlighter = Highlighter::new();
    for job in jobs {
        let (began, id) = (Instant::now(), job.id);
        let mut result = highlighter.highlight(job);
        if began.elapsed() > TIME_LIMIT {
            result = HighlightResult { id, outcome: HighlightOutcome::Plain };
        }
        if inbox.send(LoopEvent::Msg(Msg::Highlighted(Box::new(result)))).is_err() {
            return;
        }
    }
}
