//! What the user said. Of a large paste the first lines are enough to know it by.

use super::plain::{Extent, Manner, Plain};
use crate::text::Body;

#[derive(Debug)]
pub struct Asked {
    text: Plain,
    extent: Extent,
}

impl Asked {
    pub fn new(text: &str) -> Asked {
        Asked { text: Plain::new(text, Manner::User), extent: Extent::Part }
    }

    pub fn source(&self) -> &str {
        self.text.source()
    }

    pub fn is_long(&self) -> bool {
        self.text.is_long()
    }

    /// Only the first lines are shown.
    pub fn is_part(&self) -> bool {
        self.is_long() && self.extent == Extent::Part
    }

    pub fn toggle(&mut self) {
        self.extent = match self.extent {
            Extent::Part => Extent::All,
            Extent::All => Extent::Part,
        };
    }

    pub fn open(&mut self) {
        self.extent = Extent::All;
    }

    pub fn body(&mut self, width: usize) -> Body<'_> {
        let extent = if self.is_part() { Extent::Part } else { Extent::All };
        self.text.body(width, extent)
    }

    pub fn forget_rows(&mut self) {
        self.text.forget_rows();
    }
}
