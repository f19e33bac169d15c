//! Puts the output of visits, which happen in any order, into directory order.
//!
//! A finished directory deposits its block and the list of its children. A cursor walks the tree depth first and emits
//! the blocks that are ready; it stops at the first unfinished directory. One worker emits at a time.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millstream_vfs::Volume;

use crate::Directory;

/// The blocks waiting to be emitted.
#[derive(Debug)]
pub(crate) struct Sequence<V: Volume, S> {
    state: Mutex<State<V, S>>,
    max_waiting_bytes: usize,
}

#[derive(Debug)]
struct State<V: Volume, S> {
    /// From the root to the cursor's directory.
    path: Vec<Level<V, S>>,
    /// By address of the directory; its `Arc` here or in `path` keeps the address from being reused.
    deposits: HashMap<usize, Deposit<V, S>>,
    waiting_bytes: usize,
    emitting: bool,
}

#[derive(Debug)]
struct Level<V: Volume, S> {
    directory: Arc<Directory<V, S>>,
    children: Option<VecDeque<Arc<Directory<V, S>>>>,
}

#[derive(Debug)]
struct Deposit<V: Volume, S> {
    directory: Arc<Directory<V, S>>,
    children: VecDeque<Arc<Directory<V, S>>>,
    block: Option<Vec<u8>>,
}

fn key<V: Volume, S>(directory: &Arc<Directory<V, S>>) -> usize {
    Arc::as_ptr(directory).addr()
}

impl<V: Volume, S> Sequence<V, S> {
    pub(crate) fn new(root: &Arc<Directory<V, S>>, max_waiting_bytes: usize) -> Self {
        let path = vec![Level { directory: Arc::clone(root), children: None }];
        let state = State { path, deposits: HashMap::new(), waiting_bytes: 0, emitting: false };
        Sequence { state: Mutex::new(state), max_waiting_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State<V, S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds children of a directory, in their order.
    pub(crate) fn add_children(&self, directory: &Arc<Directory<V, S>>, children: &[Arc<Directory<V, S>>]) {
        self.lock().deposit(directory).children.extend(children.iter().cloned());
    }

    /// Deposits the block of `directory`, whose children have all been added.
    pub(crate) fn finish(&self, directory: &Arc<Directory<V, S>>, block: Vec<u8>) {
        let mut state = self.lock();
        state.waiting_bytes += block.len();
        state.deposit(directory).block = Some(block);
    }

    /// Emits the next blocks as far as they are ready, unless another worker is doing so.
    pub(crate) fn advance(&self, mut emit: impl FnMut(&[u8])) {
        let mut state = self.lock();
        if state.emitting {
            return;
        }
        state.emitting = true;
        while let Some(block) = state.next_block() {
            drop(state);
            emit(&block);
            state = self.lock();
            state.waiting_bytes -= block.len();
        }
        state.emitting = false;
    }

    /// If too much output is waiting, the directory whose block is next.
    pub(crate) fn held_back_for(&self) -> Option<Arc<Directory<V, S>>> {
        let state = self.lock();
        if state.waiting_bytes <= self.max_waiting_bytes {
            return None;
        }
        state.path.last().map(|level| Arc::clone(&level.directory))
    }
}

impl<V: Volume, S> State<V, S> {
    fn deposit(&mut self, directory: &Arc<Directory<V, S>>) -> &mut Deposit<V, S> {
        self.deposits.entry(key(directory)).or_insert_with(|| Deposit {
            directory: Arc::clone(directory),
            children: VecDeque::new(),
            block: None,
        })
    }

    /// Moves the cursor to the next block and takes it, if it is ready.
    fn next_block(&mut self) -> Option<Vec<u8>> {
        loop {
            let level = self.path.last_mut()?;
            match &mut level.children {
                Some(children) => match children.pop_front() {
                    Some(child) => self.path.push(Level { directory: child, children: None }),
                    None => drop(self.path.pop()),
                },
                None => {
                    let at = key(&level.directory);
                    self.deposits.get(&at)?.block.as_ref()?;
                    let Deposit { directory, children, block } = self.deposits.remove(&at)?;
                    debug_assert!(Arc::ptr_eq(&directory, &level.directory));
                    level.children = Some(children);
                    return block;
                }
            }
        }
    }
}
