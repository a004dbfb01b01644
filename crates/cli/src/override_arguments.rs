//! The settings arguments that many commands share.

use aside_session::error::HintedError;
use aside_session::settings::{LoadedSettings, Overrides, ProfileName};
use aside_session::user_files::UserFolders;

use crate::key_bindings;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct OverrideArguments {
    /// Use this profile instead of the active one
    #[arg(short, long, value_name = "PROFILE")]
    profile: Option<ProfileName>,

    /// Set a setting for this run only, as KEY=VALUE
    #[arg(long = "set", value_name = "K=V")]
    settings: Vec<String>,
}

impl OverrideArguments {
    pub(crate) fn overrides(&self) -> Overrides {
        Overrides { profile: self.profile.clone(), settings: self.settings.clone() }
    }

    /// Loads config, then the profile, then `--set`, and checks the key bindings.
    pub(crate) fn load(&self) -> Result<LoadedSettings, HintedError> {
        let loaded = self.overrides().load(&UserFolders::from_environment())?;
        key_bindings::parse(&loaded.keys)?;
        Ok(loaded)
    }
}
