//! Characters as small numbers, so that tables can be indexed by them.

/// A character of a dataset by number. Equal numbers mean equal characters within one [`Alphabet`], and the order of
/// numbers says nothing.
pub type Symbol = u32;

/// The characters that occur in a dataset, numbered as they come.
#[derive(Debug)]
pub struct Alphabet {
    ascii: [Symbol; 128],
    others: std::collections::HashMap<char, Symbol>,
    count: Symbol,
}

const UNSEEN: Symbol = Symbol::MAX;

impl Default for Alphabet {
    fn default() -> Self {
        Self {
            ascii: [UNSEEN; 128],
            others: std::collections::HashMap::new(),
            count: 0,
        }
    }
}

impl Alphabet {
    /// The symbols of a text; characters not seen before are added.
    pub fn symbols(&mut self, text: impl IntoIterator<Item = char>) -> Vec<Symbol> {
        text.into_iter().map(|c| self.symbol(c)).collect()
    }

    fn symbol(&mut self, c: char) -> Symbol {
        let fresh = self.count;
        let slot = match self.ascii.get_mut(c as usize) {
            Some(slot) => slot,
            None => self.others.entry(c).or_insert(UNSEEN),
        };
        if *slot == UNSEEN {
            *slot = fresh;
            self.count += 1;
        }
        *slot
    }

    /// How many different characters there are; every symbol is below.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// True before the first character.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}
