//! A growable array in pages. Growing never copies what is already there, so no insert stalls on
//! it, and never reserves more than one page, so that millions of timers cost what they measure.

use std::ops::{Index, IndexMut};

/// Large enough that the table of pages stays in the cache, small enough to be no burden.
const PAGE_BYTES: usize = 1 << 20;

pub(crate) struct Pages<T> {
    pages: Vec<Vec<T>>,
    len: u32,
}

impl<T> Pages<T> {
    const PAGE_BITS: u32 = match PAGE_BYTES / size_of::<T>() {
        0 => 0,
        fitting => fitting.ilog2(),
    };
    const PAGE: usize = 1 << Self::PAGE_BITS;

    pub(crate) fn with_capacity(capacity: usize) -> Self {
        let whole = (0..capacity / Self::PAGE).map(|_| Self::PAGE);
        let rest = Some(capacity % Self::PAGE).filter(|rest| *rest > 0);
        let pages = whole.chain(rest).map(Vec::with_capacity).collect();
        Pages { pages, len: 0 }
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Appends an element and returns its index.
    pub(crate) fn push(&mut self, value: T) -> u32 {
        let index = self.len;
        let page = (index >> Self::PAGE_BITS) as usize;
        if page == self.pages.len() {
            // The first page grows as any vector does: a small wheel stays small.
            self.pages.push(Vec::with_capacity(if page == 0 { 0 } else { Self::PAGE }));
        }
        self.pages[page].push(value);
        self.len = index.checked_add(1).expect("fewer than 2^32 elements");
        index
    }
}

impl<T> Index<u32> for Pages<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.pages[(index >> Self::PAGE_BITS) as usize][index as usize % Self::PAGE]
    }
}

impl<T> IndexMut<u32> for Pages<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.pages[(index >> Self::PAGE_BITS) as usize][index as usize % Self::PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = Pages::<u32>::PAGE;

    #[test]
    fn an_element_is_found_again_on_every_page() {
        let mut pages = Pages::with_capacity(PAGE + 1);
        for value in 0..3 * PAGE as u32 {
            assert_eq!(pages.push(value), value);
        }
        assert!((0..pages.len()).all(|index| pages[index] == index));
    }

    #[test]
    fn growing_reserves_at_most_one_page() {
        let mut pages = Pages::with_capacity(0);
        for value in 0..2 * PAGE as u32 + 1 {
            pages.push(value);
        }
        let reserved: usize = pages.pages.iter().map(Vec::capacity).sum();
        assert_eq!(reserved, 3 * PAGE);
    }
}
