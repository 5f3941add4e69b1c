//! One copy of every text that rows share.

use std::{collections::HashSet, sync::Arc};

/// Longer texts are rarely equal.
const LONGEST: usize = 128;
/// Below this number of texts a sweep is not worth its time.
const FEWEST: usize = 1024;

/// Hands out one shared copy of equal texts: bindings repeat their port, address and MAC.
#[derive(Debug, Default)]
pub struct Interner {
    texts: HashSet<Arc<str>>,
    /// The number of texts at which those that nobody holds any more are dropped.
    sweep_at: usize,
}

impl Interner {
    /// The shared copy of `text`.
    pub fn share(&mut self, text: &str) -> Arc<str> {
        if text.len() > LONGEST {
            return text.into();
        }
        if let Some(shared) = self.texts.get(text) {
            return Arc::clone(shared);
        }
        if self.texts.len() >= self.sweep_at.max(FEWEST) {
            self.texts.retain(|text| Arc::strong_count(text) > 1);
            self.sweep_at = 2 * self.texts.len();
        }
        let shared: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&shared));
        shared
    }

    /// How many texts it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_one_copy() {
        let mut interner = Interner::default();
        assert!(Arc::ptr_eq(&interner.share("a"), &interner.share("a")));
    }

    #[test]
    fn texts_that_nobody_holds_do_not_pile_up() {
        let mut interner = Interner::default();
        let kept = interner.share("kept");
        for number in 0..100_000 {
            interner.share(&number.to_string());
        }
        assert!(interner.len() <= FEWEST + 1, "{}", interner.len());
        assert!(Arc::ptr_eq(&kept, &interner.share("kept")));
    }
}
