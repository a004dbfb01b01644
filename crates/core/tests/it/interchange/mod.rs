//! Export and import of conversations (P5, P11).

mod generated_conversations;
mod hostile_files;
mod json_lines;
mod markdown;
mod other_programs;
mod program_files;
mod program_rows;
