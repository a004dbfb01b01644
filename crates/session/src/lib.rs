//! A running session, whatever shows it: settings, providers, keys, permissions,
//! the store and the commands.
//!
//! A front end needs [`spawn`] and the values of `aside_front`: it sends commands,
//! receives updates, and reads what to show first from [`SessionSetup`]. A program
//! calls [`run_if_helper`] before anything else, because it is its own sandbox helper.
//! Nothing here prints, and the working directory is an option.

mod active_session;
mod atomic;
mod bare_names;
pub mod confinement;
mod driver;
mod endpoint;
pub mod error;
mod file_changes;
mod git_branch;
mod handle;
pub mod key_lookup;
pub mod keyring;
mod learned_repairs;
pub mod local_servers;
pub mod log;
#[cfg_attr(not(feature = "mcp"), path = "mcp_stub.rs")]
pub mod mcp;
pub mod mcp_tables;
pub mod model_choice;
pub mod model_facts;
pub mod model_listing;
mod own_commands;
mod permission_table;
pub mod profiles;
pub mod program_sessions;
mod prompt_attachments;
pub mod provider_tables;
pub mod providers;
pub mod recording;
pub mod request_preview;
pub mod serve_table;
mod session_options;
pub mod session_recorder;
pub mod settings;
pub mod settings_file;
pub mod single_turn;
pub mod start;
pub mod stored_session;
mod system_prompt;
pub mod times;
pub mod trust;
mod update_front;
pub mod usage;
pub mod user_files;

pub use aside_confine::hide_this_process;
pub use aside_confine::supervisor::run_if_helper;
pub use aside_engine::tools::{Asker, PermissionMode};
pub use aside_store::SessionId;
pub use atomic::private_folder as create_private_folder;
pub use atomic::write as write_atomically;
pub use driver::{Driver, decision_action, nothing_found};
pub use error::HintedError;
pub use handle::{RunningSession, SessionHandle, SessionSetup, SetupAccess, spawn, spawn_with_updates};
pub use session_options::{Saving, SessionOptions};
pub use settings::Overrides;
pub use stored_session::{Continuation, SessionChoice};
pub use trust::Trust;
pub use update_front::{UpdateFront, UpdateSink};
pub use user_files::UserFolders;
