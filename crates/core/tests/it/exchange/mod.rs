//! Conversations that leave and come back (P5).

mod generated;
mod lines;
mod markdown;
