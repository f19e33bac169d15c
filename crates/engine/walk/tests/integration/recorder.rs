//! A visitor that records events.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use millstream_vfs::{Fields, FileKind, Volume};
use millstream_walk::{Chunk, Descend, Directory, FanOut, Fault, FaultSite, Visitor};

/// An event of a traversal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Visited(Vec<u8>),
    Ended(Vec<u8>),
    Left(Vec<u8>),
    Fault(Vec<u8>, Fault),
}

/// Records every event. With [`FanOut::Parallel`] it stats each entry, and chunks go to other workers.
pub struct Recorder<V> {
    pub fan_out: FanOut,
    descend_at: DescendAt,
    events: Mutex<Vec<Event>>,
    pub emitted: Mutex<Vec<Vec<u8>>>,
    volume: PhantomData<fn() -> V>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DescendAt {
    Visit,
    SortedEnd,
}

pub type Names = Mutex<Vec<(CString, FileKind, u64)>>;

fn path_of<V: Volume>(directory: &Directory<V, Names>) -> Vec<u8> {
    let mut path = Vec::new();
    directory.write_path(&mut path);
    path
}

impl<V> Recorder<V> {
    pub fn new(fan_out: FanOut, descend_at: DescendAt) -> Self {
        Recorder {
            fan_out,
            descend_at,
            events: Mutex::default(),
            emitted: Mutex::default(),
            volume: PhantomData,
        }
    }

    pub fn record(&self, event: Event) {
        self.events.lock().expect("events").push(event);
    }

    pub fn events(&self) -> Vec<Event> {
        self.events.lock().expect("events").clone()
    }

    pub fn visited(&self) -> BTreeSet<Vec<u8>> {
        let visited: Vec<_> = self
            .events()
            .into_iter()
            .filter_map(|e| if let Event::Visited(p) = e { Some(p) } else { None })
            .collect();
        let set: BTreeSet<_> = visited.iter().cloned().collect();
        assert_eq!(set.len(), visited.len(), "an entry was visited twice");
        set
    }
}

impl<V: Volume> Visitor for Recorder<V> {
    type Volume = V;
    type State = Names;
    type Worker = ();

    fn root_state(&self) -> Names {
        Names::default()
    }

    fn worker(&self) {}

    fn fan_out(&self) -> FanOut {
        self.fan_out
    }

    fn visit(&self, (): &mut (), chunk: &Chunk<'_, V, Names>, descend: &mut Descend<'_, V, Names>) {
        for entry in chunk.entries() {
            let mut path = Vec::new();
            entry.write_path(&mut path);
            self.record(Event::Visited(path));
            if self.fan_out == FanOut::Parallel
                && let Err(error) = entry.metadata(Fields::SIZE | Fields::KIND)
            {
                self.fault(&mut (), &FaultSite::Entry(&entry), &Fault::Volume(error));
            }
            if entry.kind() != Ok(FileKind::Directory) {
                continue;
            }
            match self.descend_at {
                DescendAt::Visit => descend.into_entry(&entry, Names::default()),
                DescendAt::SortedEnd => {
                    let mut names = chunk.directory().state().lock().expect("names");
                    names.push((entry.name().to_owned(), entry.listed_kind(), entry.operand()));
                }
            }
        }
    }

    fn end_of_directory(
        &self,
        (): &mut (),
        directory: &Arc<Directory<V, Names>>,
        descend: &mut Descend<'_, V, Names>,
        block: &mut Vec<u8>,
    ) {
        self.record(Event::Ended(path_of(directory)));
        let mut names = directory.state().lock().expect("names");
        names.sort_by(|one, other| one.0.cmp(&other.0));
        for (name, listed, operand) in names.drain(..) {
            descend.into_name(&name, listed, operand, Names::default());
        }
        directory.write_path(block);
        block.push(0);
    }

    fn emit(&self, block: &[u8]) {
        self.emitted.lock().expect("emitted").push(block[..block.len() - 1].to_vec());
    }

    fn leave(&self, (): &mut (), directory: &Arc<Directory<V, Names>>) {
        self.record(Event::Left(path_of(directory)));
    }

    fn fault(&self, (): &mut (), place: &FaultSite<'_, V, Names>, fault: &Fault) {
        let mut path = Vec::new();
        place.write_path(&mut path);
        self.record(Event::Fault(path, fault.clone()));
    }
}

/// Checks that directories are visited before their entries and left after them.
pub fn check_order(events: &[Event]) {
    let position = |wanted: &Event| events.iter().position(|e| e == wanted);
    for (at, event) in events.iter().enumerate() {
        let Event::Visited(path) = event else { continue };
        let Some(parent) = Path::new(OsStr::from_bytes(path)).parent() else { continue };
        let parent = parent.as_os_str().as_bytes().to_vec();
        if let Some(visited) = position(&Event::Visited(parent.clone())) {
            assert!(visited < at, "{parent:?} after its child");
            let ended = position(&Event::Ended(parent.clone())).expect("every directory ends");
            let left = position(&Event::Left(parent)).expect("every directory is left");
            assert!(at < ended && ended < left);
            if let Some(own) = position(&Event::Left(path.clone())) {
                assert!(own < left, "a parent was left before {path:?}");
            }
        }
    }
}
