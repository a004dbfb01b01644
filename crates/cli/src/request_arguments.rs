//! The arguments of `encode` and `explain`: which request to show.

use aside_core::conversation::Conversation;
use aside_session::error::HintedError;
use aside_session::request_preview::{PreviewOptions, RequestPreview, TokenCounting};
use aside_session::user_files::UserFolders;
use aside_session::{session_recorder, stored_session};
use aside_store::Store;

use crate::input_file;
use crate::override_arguments::OverrideArguments;

/// The arguments that `encode` and `explain` share.
#[derive(Debug, clap::Args)]
pub(crate) struct RequestArguments {
    /// The model, as PROVIDER/MODEL; by default the one the conversation names
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,

    /// The dialect, if it is not the provider's own
    #[arg(long, value_name = "D")]
    dialect: Option<String>,

    #[command(flatten)]
    overrides: OverrideArguments,

    /// A saved session: its id, title, or the beginning of either
    #[arg(short, long, value_name = "ID", conflicts_with = "file")]
    resume: Option<String>,

    /// A conversation as JSON lines; `-` is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: String,
}

impl RequestArguments {
    pub(crate) fn build(&self, counting: TokenCounting) -> Result<RequestPreview, HintedError> {
        let folders = UserFolders::from_environment();
        let options = PreviewOptions {
            model: self.model.as_deref(),
            dialect: self.dialect.as_deref(),
            overrides: &self.overrides.overrides(),
            counting,
        };
        RequestPreview::build(&options, &folders, || self.read(&folders))
    }

    fn read(&self, folders: &UserFolders) -> Result<Conversation, HintedError> {
        if let Some(word) = &self.resume {
            let store = session_recorder::open_store(folders)?;
            let id = store.find(word).map_err(|error| session_recorder::store_error(&error))?;
            return Ok(stored_session::read(&store, id)?.conversation);
        }
        let text = input_file::read_text(&self.file)?;
        let conversation = Conversation::parse(&text).map_err(|error| {
            HintedError::new(format!("{}: {error}", self.file))
                .hint("one JSON object a line; assistant lines are what `aside decode --dialect D` prints")
        })?;
        Ok(conversation)
    }
}
