//! Who produced a message.

/// Who produced a message, and so who may read its seals. An absent member
/// matches anything.
///
/// ```
/// use aside_core::Origin;
/// let origin = Origin::default().with_provider("deepseek".to_owned()).with_model("deepseek-reasoner".to_owned());
/// assert_eq!(origin.dialect, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Origin {
    /// The provider as the user named it.
    pub provider: Option<String>,
    /// The id of the dialect that decoded the reply.
    pub dialect: Option<String>,
    /// The model as requested.
    pub model: Option<String>,
    /// The base URL that the request went to.
    pub endpoint: Option<String>,
    /// A short hash of the key, never the key itself.
    pub account: Option<String>,
}

impl Origin {
    /// Sets the provider as the user named it.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<Option<String>>) -> Origin {
        self.provider = provider.into();
        self
    }

    /// Sets the dialect that decoded the reply.
    #[must_use]
    pub fn with_dialect(mut self, dialect: impl Into<Option<String>>) -> Origin {
        self.dialect = dialect.into();
        self
    }

    /// Sets the model as requested.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<Option<String>>) -> Origin {
        self.model = model.into();
        self
    }

    /// Sets the base URL that the request went to.
    #[must_use]
    pub fn with_endpoint(mut self, endpoint: impl Into<Option<String>>) -> Origin {
        self.endpoint = endpoint.into();
        self
    }

    /// Sets the short hash of the key.
    #[must_use]
    pub fn with_account(mut self, account: impl Into<Option<String>>) -> Origin {
        self.account = account.into();
        self
    }
}
