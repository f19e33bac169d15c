//! Rules whose patterns have no wildcards, found by the path of an entry rather than one after the other.

use std::collections::HashMap;

/// Where in a path a literal pattern stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// It is the whole path.
    Path,
    /// It is as many of the last components as it has.
    Tail,
}

/// Indexes of rules, by the text of their patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Literals {
    paths: HashMap<Vec<u8>, Vec<usize>>,
    tails: HashMap<Vec<u8>, Vec<usize>>,
    /// The most components that a text of `tails` has.
    most_components: usize,
}

impl Literals {
    /// Adds a rule, unless an earlier one of the same text is the same otherwise. So the rules of one text
    /// are few.
    pub(super) fn insert(
        &mut self,
        place: Anchor,
        text: &[u8],
        index: usize,
        is_same: impl Fn(&usize) -> bool,
    ) {
        let rules = match place {
            Anchor::Path => &mut self.paths,
            Anchor::Tail => {
                self.most_components =
                    self.most_components.max(1 + text.iter().filter(|&&b| b == b'/').count());
                &mut self.tails
            }
        };
        let rules = rules.entry(text.to_vec()).or_default();
        if !rules.iter().any(is_same) {
            rules.push(index);
        }
    }

    /// The first of the rules for a path that applies.
    pub(super) fn find(&self, path: &[u8], applies: impl Fn(&usize) -> bool) -> Option<usize> {
        let first = |rules: &Vec<usize>| rules.iter().copied().find(&applies);
        let starts = (0..path.len()).rev().filter(|&at| at == 0 || path[at - 1] == b'/');
        let tails = starts.take(self.most_components).filter_map(|at| self.tails.get(&path[at..]));
        tails.chain(self.paths.get(path)).filter_map(first).min()
    }
}
