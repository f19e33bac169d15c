//! The directories of `--parents`: those that lead to an operand are made in the destination as well.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use millstream_vfs::{
    Dir, Errno, Error, Fields, File, FileKind, Metadata, Operation, SymlinkBehavior, Volume,
};

use super::attributes::{Attributes, Before};
use super::copier::{Copier, Done, Reported};
use super::item::{Target, joined};
use super::options::{Effect, Options};
use super::place::{Budget, Origin, Place};
use super::report::{Problem, Sink, Trouble};

/// A directory that leads to an operand.
#[derive(Debug)]
struct Parent<D> {
    place: Arc<Place<D>>,
    source: Vec<u8>,
    destination: Vec<u8>,
    metadata: Metadata,
    is_new: bool,
}

/// The directories that lead to operands.
#[derive(Debug)]
pub(super) struct Parents<D> {
    made: Vec<Parent<D>>,
}

impl<D> Default for Parents<D> {
    fn default() -> Self {
        Parents { made: Vec::new() }
    }
}

struct Maker<'a, V: Volume> {
    base: V::Dir,
    budget: &'a Budget,
    attributes: Attributes,
    options: &'a Options,
    sink: &'a dyn Sink,
    made: Vec<Parent<V::Dir>>,
}

impl<D: Dir> Parents<D> {
    /// Makes the directories that lead to `sources` below `directory`; where the operands go, as far as that worked.
    pub(super) fn make<V: Volume<Dir = D>>(
        volume: &V,
        sources: &[CString],
        directory: &CStr,
        place: &Arc<Place<D>>,
        budget: &Budget,
        options: &Options,
        sink: &dyn Sink,
    ) -> (Vec<Target<D>>, Self) {
        let mut maker = Maker::<V> {
            base: volume.base(),
            budget,
            attributes: Attributes::new(options),
            options,
            sink,
            made: Vec::new(),
        };
        let targets = sources.iter().filter_map(|source| maker.target(source, directory, place)).collect();
        (targets, Parents { made: maker.made })
    }

    /// Gives the directories their attributes, the deepest first.
    pub(super) fn finish<V: Volume<Dir = D>>(self, copier: &Copier<'_, V>) {
        for parent in self.made.iter().rev() {
            let fresh = parent.is_new;
            let wanted = copier.attributes.preserve.any()
                || (fresh && copier.attributes.finishes_directory(&parent.metadata));
            if !wanted || parent.place.origin == Origin::Imagined {
                continue;
            }
            let mut report = |trouble, errno| {
                copier.problem(&Problem {
                    trouble,
                    source: &parent.source,
                    destination: &parent.destination,
                    errno: Some(errno),
                });
            };
            let opened = parent
                .place
                .handle(&copier.budget)
                .and_then(|handle| handle.as_file())
                .and_then(|file| Ok((file.metadata(Fields::STAT)?, file)));
            match opened {
                Ok((metadata, file)) => {
                    let before = Before { metadata: &metadata, fresh, may_have_acl: false };
                    copier.attributes.set(&file, &parent.metadata, &[], before, &mut report);
                }
                Err(error) => report(Trouble::OpenDestinationDirectory, error.errno),
            }
        }
    }
}

impl<V: Volume> Maker<'_, V> {
    fn target(
        &mut self,
        source: &CString,
        directory: &CStr,
        into: &Arc<Place<V::Dir>>,
    ) -> Option<Target<V::Dir>> {
        let path = source.to_bytes();
        let start = path.iter().position(|&b| b != b'/').unwrap_or(path.len());
        let end = path.iter().rposition(|&b| b != b'/').map_or(start, |at| at + 1);
        let components: Vec<&[u8]> =
            path[start..end].split(|&b| b == b'/').filter(|c| !c.is_empty()).collect();
        let (name, parents) = match components.split_last() {
            Some((name, parents)) => (*name, parents),
            None => (&b"."[..], &[][..]),
        };
        let mut place = Arc::clone(into);
        let mut below = Vec::new();
        for component in parents {
            below = joined(&below, component);
            let leading = [&path[..start], &below[..]].concat();
            let destination = joined(directory.to_bytes(), &below);
            place = self.parent(&place, component, leading, destination).ok()?;
        }
        let name = CString::new(name).unwrap_or_default();
        let path = joined(directory.to_bytes(), &path[start..end]);
        Some(Target { source: source.clone(), path, place, name })
    }

    fn parent(
        &mut self,
        above: &Arc<Place<V::Dir>>,
        name: &[u8],
        source: Vec<u8>,
        destination: Vec<u8>,
    ) -> Done<Arc<Place<V::Dir>>> {
        let known = self.made.iter().find(|parent| parent.destination == destination);
        if let Some(parent) = known {
            return Ok(Arc::clone(&parent.place));
        }
        let name = CString::new(name).unwrap_or_default();
        let source_name = CString::new(source.clone()).unwrap_or_default();
        let metadata = self
            .base
            .metadata(&source_name, SymlinkBehavior::Follow, Fields::STAT)
            .map_err(|error| self.problem(Trouble::ParentAttributes, &source, &destination, Some(error)))?;
        if metadata.kind() != FileKind::Directory {
            let error = Error::new(Operation::Stat, Errno::NOTDIR);
            return Err(self.problem(Trouble::ParentAttributes, &source, &destination, Some(error)));
        }
        let origin = self.make_directory(above, &name, &metadata, &source, &destination)?;
        let is_new = origin == Origin::Made;
        // Another operand may have put something into it by the time that it is used.
        let place = Place::below(above, &name, if is_new { Origin::Found } else { origin });
        self.made.push(Parent { place: Arc::clone(&place), source, destination, metadata, is_new });
        Ok(place)
    }

    fn make_directory(
        &self,
        above: &Place<V::Dir>,
        name: &CStr,
        metadata: &Metadata,
        source: &[u8],
        destination: &[u8],
    ) -> Done<Origin> {
        let failed = |error| self.problem(Trouble::CreateDirectory, source, destination, Some(error));
        let found = above
            .handle(self.budget)
            .and_then(|above| above.metadata(name, SymlinkBehavior::Follow, Fields::KIND));
        match found {
            Ok(found) if found.kind() == FileKind::Directory => return Ok(Origin::Found),
            Ok(_) => return Err(self.problem(Trouble::ParentNotDirectory, destination, destination, None)),
            Err(error) if error.errno == Errno::NOENT => {}
            Err(error) => return Err(failed(error)),
        }
        let mut line = Vec::new();
        self.options.trace.parent(source, destination, self.options.effect, &mut line);
        if !line.is_empty() {
            self.sink.lines(&line);
        }
        if self.options.effect == Effect::Told {
            return Ok(Origin::Imagined);
        }
        above
            .handle(self.budget)
            .and_then(|above| above.create_dir(name, self.attributes.creation_mode(metadata)))
            .map_err(failed)?;
        Ok(Origin::Made)
    }

    fn problem(&self, trouble: Trouble, source: &[u8], destination: &[u8], error: Option<Error>) -> Reported {
        let errno = error.map(|error| error.errno);
        self.sink.problem(&Problem { trouble, source, destination, errno });
        Reported
    }
}
