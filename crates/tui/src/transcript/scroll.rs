//! Where the view stands. It is a row of an item, never a number of rows from
//! the start: what happens elsewhere in the list cannot move it.

use super::item::Item;
use super::thought::Shape;
use super::{Look, Transcript};
use crate::seam::Sought;
use crate::theme::Motion;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Pos {
    pub(super) item: usize,
    /// Counted from the blank rows before the item.
    pub(super) row: usize,
}

impl Transcript {
    pub fn is_following(&self) -> bool {
        self.follow
    }

    /// To the end, and along with it.
    pub fn follow(&mut self) {
        self.follow = true;
        self.refill = true;
    }

    pub fn to_start(&mut self) {
        self.top = Pos::default();
        self.follow = false;
    }

    /// Up for less than nothing.
    pub fn scroll(&mut self, rows: isize) {
        let look = self.look(Motion::Still);
        let steps = rows.unsigned_abs();
        if rows < 0 {
            self.top = self.up(self.top, steps, &look);
            self.follow = false;
            return;
        }
        let last = self.bottom(&look);
        let down = self.down(self.top, steps, &look);
        if down >= last {
            self.top = self.top.max(last);
            self.follow = true;
        } else {
            self.top = down;
        }
    }

    /// A message of the history that was restored goes to the top.
    pub fn go_to(&mut self, message: usize, part: Sought) {
        let Some(first) = self.message_at.get(message).copied() else { return };
        let end = self.message_at.get(message + 1).copied().unwrap_or(self.items.len());
        let mut thoughts = (first..end).filter(|index| matches!(self.items.get(*index), Some(Item::Thought(_))));
        let found = match part {
            Sought::Said => first,
            Sought::Thought(nth) => thoughts.nth(nth).unwrap_or(first),
        };
        let view = self.view;
        if let Some(Item::Thought(thought)) = self.items.get_mut(found)
            && part != Sought::Said
            && thought.shape(view) != Shape::Open
        {
            thought.toggle(view);
        }
        self.top = Pos { item: found, row: 0 };
        self.follow = false;
    }

    pub fn page(&self) -> isize {
        isize::try_from(self.size.1.saturating_sub(2).max(1)).unwrap_or(1)
    }

    /// The next block that can be folded, in a direction.
    pub fn focus_next(&mut self, forward: bool) {
        let foldable = |transcript: &Transcript, index: usize| {
            transcript.items.get(index).is_some_and(|item| item.can_fold() && !item.is_hidden(transcript.view))
        };
        let from = self.focus;
        let found = if forward {
            let start = from.map_or(self.top.item, |at| at + 1);
            (start..self.items.len()).find(|index| foldable(self, *index))
        } else {
            let end = from.unwrap_or(self.items.len());
            (0..end).rev().find(|index| foldable(self, *index))
        };
        if let Some(found) = found {
            self.focus = Some(found);
            self.show(found);
        }
    }

    /// What the user said before or behind goes to the top.
    pub fn jump_turn(&mut self, forward: bool) {
        let is_user = |index: &usize| matches!(self.items.get(*index), Some(Item::User(_)));
        let Pos { item, row } = self.top;
        let found = if forward {
            (item + 1..self.items.len()).find(is_user)
        } else {
            // From inside a turn it goes to its start first.
            let inside = row > self.gap(item);
            (0..item + usize::from(inside)).rev().find(is_user)
        };
        let Some(found) = found else {
            if forward {
                self.follow();
            }
            return;
        };
        let look = self.look(Motion::Still);
        let target = Pos { item: found, row: self.gap(found) };
        let last = self.bottom(&look);
        if target >= last {
            self.follow();
        } else {
            self.top = target;
            self.follow = false;
        }
    }

    /// Scrolls just as far as the header of an item needs.
    fn show(&mut self, index: usize) {
        let look = self.look(Motion::Still);
        let header = Pos { item: index, row: self.gap(index) };
        if header < self.top {
            self.top = header;
            self.follow = false;
        } else if self.rows_between(self.top, header, self.size.1, &look) >= self.size.1 {
            self.top = self.up(header, self.size.1 / 2, &look);
            self.follow = false;
        }
    }

    pub(super) fn resize(&mut self, width: usize, height: usize) {
        let before = std::mem::replace(&mut self.size, (width, height));
        if before.0 != width && !self.follow {
            self.keep_share(before.0, width);
        }
        if before != self.size {
            self.refill |= self.follow;
        }
    }

    /// The same part of the item stays at the top when its rows are broken anew.
    fn keep_share(&mut self, before: usize, after: usize) {
        let mut look = self.look(Motion::Still);
        look.width = before;
        let was = self.height(self.top.item, &look).max(1);
        look.width = after;
        let is = self.height(self.top.item, &look);
        self.top.row = self.top.row * is / was;
    }

    /// Decides the first row of this frame. While following, it only moves on
    /// as far as new rows need: a thought that folds leaves room below it,
    /// and nothing above it moves.
    pub(super) fn place(&mut self, look: &Look) {
        self.clamp(look);
        let refill = std::mem::take(&mut self.refill);
        if self.follow || refill {
            let last = self.bottom(look);
            if last > self.top && self.follow || refill && (self.follow || last < self.top) {
                self.top = last;
            }
        }
    }

    /// The item at the top may have shrunk, or be gone.
    fn clamp(&mut self, look: &Look) {
        while self.top.item < self.items.len() {
            let height = self.height(self.top.item, look);
            if self.top.row < height {
                return;
            }
            if height > 0 {
                self.top.row = height - 1;
                return;
            }
            self.top = Pos { item: self.top.item + 1, row: 0 };
        }
        if self.top.item > 0 && self.top.item >= self.items.len() {
            self.top = self.bottom(look);
        }
    }

    /// The first row of a view that ends with the last row.
    fn bottom(&mut self, look: &Look) -> Pos {
        let end = Pos { item: self.items.len(), row: 0 };
        self.up(end, self.size.1, look)
    }

    fn up(&mut self, from: Pos, rows: usize, look: &Look) -> Pos {
        let mut left = rows;
        let mut at = from;
        loop {
            if at.row >= left {
                return Pos { row: at.row - left, ..at };
            }
            left -= at.row;
            if at.item == 0 {
                return Pos::default();
            }
            let item = at.item - 1;
            at = Pos { item, row: self.height(item, look) };
        }
    }

    fn down(&mut self, from: Pos, rows: usize, look: &Look) -> Pos {
        let mut left = rows + from.row;
        let mut item = from.item;
        while item < self.items.len() {
            let height = self.height(item, look);
            if left < height {
                return Pos { item, row: left };
            }
            left -= height;
            item += 1;
        }
        Pos { item, row: 0 }
    }

    /// Rows from one place to a later one, as far as `most`.
    fn rows_between(&mut self, from: Pos, to: Pos, most: usize, look: &Look) -> usize {
        let mut rows = 0;
        let mut item = from.item;
        while item < to.item && rows < most + from.row {
            rows += self.height(item, look);
            item += 1;
        }
        (rows + to.row).saturating_sub(from.row)
    }
}
