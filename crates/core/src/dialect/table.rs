//! Two shapes every key of a dialect file has: a table of optional keys, and a choice of words.

/// Declares a table whose keys are all optional and can be laid over another.
/// Behind the `;` stand tables within the table.
macro_rules! table {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$field_meta:meta])* $key:ident: $kind:ty),* $(,)?
        $(; $($inner:ident: $inner_kind:ty),* $(,)?)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $($(#[$field_meta])* $key: Option<$kind>,)*
            $($(#[serde(default)] $inner: $inner_kind,)*)?
        }

        impl $name {
            /// What the other says wins, key by key.
            pub(super) fn lay_over(&mut self, other: $name) {
                $(if other.$key.is_some() { self.$key = other.$key; })*
                $($(self.$inner.lay_over(other.$inner);)*)?
            }
        }
    };
}

/// Declares an enum whose variants are words in the files.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
        pub enum $name {
            $($(#[$variant_meta])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// The word for it in the files.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }
    };
}

pub(super) use {table, words};
