//! JSON as text: read in order and written in place, without a tree.
//!
//! A tree costs an allocation per nested value, and a copy of every text. The
//! decoders and encoders therefore work on the text itself.

mod compact;
mod read;
mod sorted;
mod string;
#[cfg(test)]
mod tests;
mod truncated;
mod value_path;
mod walker;
mod write;

pub(crate) use compact::{canonical, compact, compact_pieces};
pub use read::short_members;
pub(crate) use read::{
    FirstChoice, Indexed, JsonString, ObjectMembers, at_path, count_of, is_empty_value, kept_members, member, members,
    parse, range_of, read, string_of, text_member, text_of,
};
pub use sorted::sorted_json;
pub use string::{JsonText, split_within};
pub(crate) use truncated::close_truncated;
pub(crate) use value_path::{remove_value, set_value, value_at, value_at_mut};
pub use walker::NotJson;
pub(crate) use walker::{FromJson, JsonKind, JsonWalker, Raw, each_element, each_member};
pub(crate) use write::{ListWriter, NestedObject, ObjectWriter, list_of, object_into, quote, quote_into};
pub use write::{escape_into, find_escaped};
