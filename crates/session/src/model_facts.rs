//! What is known about a model, and from where: the user's config, the provider's own list, the dialect, the table of
//! models, or the dialect's default.

use aside_core::dialect::{AskDefault, AskRules, Dialect, Dialects, FactSource, LimitLevel, matches_pattern};
use aside_core::model_table::{FoundModel, Price};

use crate::provider_tables::ModelTable;

/// A fact with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Sourced<T> {
    pub value: T,
    pub source: FactSource,
    /// The date of the source, where it has one.
    pub date: Option<String>,
}

/// What is known about a model. Unknown facts are `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelFacts {
    /// The window: tokens of a request and its reply.
    pub context: Option<Sourced<u64>>,
    /// The most tokens of a request, if less than the window.
    pub input: Option<Sourced<u64>>,
    /// The most tokens of a reply.
    pub output: Option<Sourced<u64>>,
    pub price: Option<Sourced<Price>>,
    pub images: Option<Sourced<bool>>,
    pub efforts: Option<Sourced<Vec<String>>>,
    pub thinks: Option<Sourced<bool>>,
    pub status: Option<Sourced<String>>,
}

/// Whether the provider's own prices apply: they do at its own URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prices {
    Apply,
    Unknown,
}

impl ModelFacts {
    /// Collects the facts, from the source with the highest precedence to the lowest.
    pub fn gather(
        dialects: &Dialects,
        dialect: &Dialect,
        model: &str,
        config: &ModelTable,
        prices: Prices,
    ) -> ModelFacts {
        let found = dialects.model(dialect, model);
        let user = found.as_ref().filter(|found| FactSource::from(found.origin) == FactSource::User);
        let builtin = found.as_ref().filter(|found| FactSource::from(found.origin) == FactSource::Table);
        let mut facts = ModelFacts::of_config(config);
        facts.fill(user.map(|found| ModelFacts::of_row(found, Prices::Apply)).unwrap_or_default());
        facts.fill(ModelFacts::of_dialect(dialect, model, builtin));
        facts.fill(builtin.map(|found| ModelFacts::of_row(found, prices)).unwrap_or_default());
        facts.fill(ModelFacts::of_default(dialect));
        facts
    }

    /// The input that fits.
    pub fn context_limit(&self) -> Option<u64> {
        self.input.as_ref().or(self.context.as_ref()).map(|limit| limit.value)
    }

    /// Adds what the provider's own list says. Only the user's facts take precedence over it.
    #[must_use]
    pub(crate) fn with_live(self, live: ModelFacts) -> ModelFacts {
        let mut facts = self.clone().of_user();
        facts.fill(live);
        facts.fill(self);
        facts
    }

    /// Only what the user says.
    fn of_user(self) -> ModelFacts {
        fn of_user<T>(fact: Option<Sourced<T>>) -> Option<Sourced<T>> {
            fact.filter(|fact| fact.source == FactSource::User)
        }
        ModelFacts {
            context: of_user(self.context),
            input: of_user(self.input),
            output: of_user(self.output),
            price: of_user(self.price),
            images: of_user(self.images),
            efforts: of_user(self.efforts),
            thinks: of_user(self.thinks),
            status: of_user(self.status),
        }
    }

    /// Fills in facts that are still unknown.
    pub fn fill(&mut self, lower: ModelFacts) {
        // The limits of a higher source are complete: its window is not combined with another's input limit, unless
        // it names only the input limit.
        if self.context.is_none() {
            self.context = lower.context;
            self.input = self.input.take().or(lower.input);
        }
        self.output = self.output.take().or(lower.output);
        self.price = self.price.take().or(lower.price);
        self.images = self.images.take().or(lower.images);
        self.efforts = self.efforts.take().or(lower.efforts);
        self.thinks = self.thinks.take().or(lower.thinks);
        self.status = self.status.take().or(lower.status);
    }

    fn of_config(config: &ModelTable) -> ModelFacts {
        ModelFacts {
            context: config.context_limit.map(|limit| sourced(limit, FactSource::User)),
            price: config.price.clone().map(|price| sourced(price, FactSource::User)),
            ..ModelFacts::default()
        }
    }

    fn of_row(found: &FoundModel<'_>, prices: Prices) -> ModelFacts {
        let (row, source) = (&found.row, FactSource::from(found.origin));
        let price = match prices {
            Prices::Apply => found.price().cloned(),
            Prices::Unknown => None,
        };
        let efforts: Vec<String> =
            row.efforts.iter().filter(|word| **word != "none").map(|word| (*word).to_owned()).collect();
        fn from_table<T>(value: T, source: FactSource, date: Option<&str>) -> Sourced<T> {
            Sourced { value, source, date: date.map(str::to_owned) }
        }
        let date = found.date;
        ModelFacts {
            context: row.context.map(|limit| from_table(limit, source, date)),
            input: row.input.map(|limit| from_table(limit, source, date)),
            output: row.output.map(|limit| from_table(limit, source, date)),
            price: price.map(|price| from_table(price, source, date)),
            images: row.image.map(|image| from_table(image, source, date)),
            efforts: Some(efforts).filter(|words| !words.is_empty()).map(|words| from_table(words, source, date)),
            thinks: row.thinks.map(|thinks| from_table(thinks, source, date)),
            status: row.status.map(|status| from_table(status.to_owned(), source, date)),
        }
    }

    /// What the dialect says about this model in particular. Its limit is the input that fits, so that where the table
    /// knows an input limit, it replaces that one.
    fn of_dialect(dialect: &Dialect, model: &str, row: Option<&FoundModel<'_>>) -> ModelFacts {
        if !dialect.models().any(|(pattern, _)| matches_pattern(pattern, model)) {
            return ModelFacts::default();
        }
        let ask = &dialect.rules(Some(model)).ask;
        let facts = ModelFacts::of_rules(ask, FactSource::Dialect);
        let limit = ask.context_limit.filter(|_| ask.context_limit_level == LimitLevel::Model);
        let has_input_limit = row.is_some_and(|found| found.row.input.is_some());
        let (context, input) = if has_input_limit { (None, limit) } else { (limit, None) };
        ModelFacts {
            context: context.map(|limit| sourced(limit, FactSource::Dialect)),
            input: input.map(|limit| sourced(limit, FactSource::Dialect)),
            ..facts
        }
    }

    fn of_default(dialect: &Dialect) -> ModelFacts {
        let ask = &dialect.rules(None).ask;
        let limit = ask.context_limit.map(|limit| sourced(limit, FactSource::Default));
        ModelFacts { context: limit, ..ModelFacts::of_rules(ask, FactSource::Default) }
    }

    /// Effort levels, and whether the model thinks. An unknown server's rules say nothing about its models.
    fn of_rules(ask: &AskRules, source: FactSource) -> ModelFacts {
        let thinks = ask.default != AskDefault::Off
            || !ask.on.is_empty()
            || !ask.effort.path.is_empty()
            || !ask.budget.path.is_empty();
        let efforts = Some(ask.effort.values.clone()).filter(|_| !ask.effort.path.is_empty());
        ModelFacts {
            thinks: Some(sourced(thinks, source)),
            efforts: efforts.map(|words| sourced(words, source)),
            ..ModelFacts::default()
        }
    }
}

fn sourced<T>(value: T, source: FactSource) -> Sourced<T> {
    Sourced { value, source, date: None }
}
