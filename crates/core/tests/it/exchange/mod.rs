//! Conversations that leave and come back (P5).

mod generated;
mod hostile;
mod lines;
mod markdown;
mod others;
