//! Macros for the two kinds of keys in dialect files: tables of optional keys,
//! and choices.

/// Declares a table whose keys are all optional, with a method to merge another
/// table over it. Nested tables follow the `;`.
macro_rules! table {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$field_meta:meta])* $visible:vis $key:ident: $kind:ty),* $(,)?
        $(; $($inner:ident: $inner_kind:ty),* $(,)?)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $($(#[$field_meta])* $visible $key: Option<$kind>,)*
            $($(#[serde(default)] $inner: $inner_kind,)*)?
        }

        impl $name {
            /// Merges another table over this one, key by key. The other one
            /// wins.
            pub(super) fn merge(&mut self, other: $name) {
                $(if other.$key.is_some() { self.$key = other.$key; })*
                $($(self.$inner.merge(other.$inner);)*)?
            }
        }
    };
}

/// Declares an enum with the word for each variant in the files.
macro_rules! choices {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$variant_meta])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// The word used in the files.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }
    };
}

pub(super) use {choices, table};
