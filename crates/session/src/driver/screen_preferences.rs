//! The preferences about the screen that commands change: they also apply to later sessions.

use aside_core::settings::{Layer, ScreenTheme, SettingKey, SettingValue};
use aside_front::MouseMode;

use super::{CommandOutcome, Driver, replies};
use crate::error::HintedError;
use crate::settings::{self, setting_error};

impl Driver {
    pub(super) fn set_theme(&mut self, theme: Option<ScreenTheme>) -> Result<CommandOutcome, HintedError> {
        let Some(theme) = theme else {
            let theme = self.active.session.settings.theme();
            return Ok(CommandOutcome::Reply(replies::line(format!("theme: {theme}"))));
        };
        let value = SettingValue::Choice(theme.as_str());
        self.prefer(SettingKey::Theme, value, &format!("theme: {theme}"))
    }

    pub(super) fn set_mouse(&mut self, mouse: MouseMode) -> Result<CommandOutcome, HintedError> {
        let (is_captured, what) = match mouse {
            MouseMode::Captured => (true, "mouse: clicks and the wheel belong to aside"),
            MouseMode::Released => (false, "mouse: dragging selects text; PgUp and PgDn scroll"),
        };
        self.prefer(SettingKey::Mouse, SettingValue::Bool(is_captured), what)
    }

    /// Changes a setting here and in the config.
    fn prefer(&mut self, key: SettingKey, value: SettingValue, what: &str) -> Result<CommandOutcome, HintedError> {
        let settings = &mut self.active.session.settings;
        settings.set(Layer::Session, key.name(), &value.to_string()).map_err(|error| setting_error(&error))?;
        self.send_status();
        let Some(folder) = &self.active.user_folders.config else {
            return Ok(CommandOutcome::Reply(replies::line(format!("{what}; for this session only"))));
        };
        settings::save(folder, key, &value)
            .map_err(|error| error.prefixed(&format!("{what}, for this session only")))?;
        Ok(CommandOutcome::Reply(replies::line(format!("{what}; later sessions too"))))
    }
}
