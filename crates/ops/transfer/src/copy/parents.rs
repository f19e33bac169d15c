//! `--parents`: the directories that lead to an operand are created in the destination as well.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use millstream_vfs::{Dir, Errno, Error, Fields, File, FileKind, Metadata, SymlinkBehavior, Volume};

use super::copier::Copier;
use super::item::{Target, joined};
use super::options::{Directories, Execution};
use super::report::{Problem, Trouble};
use super::watchers::Watchers;
use crate::transfer::attributes::{Attributes, Before, XattrValues};
use crate::transfer::place::{Budget, Origin, Place};
use crate::transfer::report::{Done, Reported};

/// A directory that leads to an operand.
#[derive(Debug)]
struct Parent<D> {
    place: Arc<Place<D>>,
    source: Vec<u8>,
    destination: Vec<u8>,
    metadata: Metadata,
    /// Its access control lists, if the copy gets them.
    acls: XattrValues,
    is_new: bool,
    /// Whether it gets the attributes of the source: not if all directories on the path existed.
    gets_attributes: bool,
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
    watchers: Watchers<'a>,
    made: Vec<Parent<V::Dir>>,
}

impl<D: Dir> Parents<D> {
    /// Creates the directories that lead to `sources` below `directory`; returns the destination directory of each
    /// operand for which that succeeded.
    pub(super) fn make<V: Volume<Dir = D>>(
        volume: &V,
        sources: &[CString],
        directory: &CStr,
        place: &Arc<Place<D>>,
        budget: &Budget,
        watchers: Watchers<'_>,
    ) -> (Vec<Target<D>>, Self) {
        let mut maker = Maker::<V> {
            base: volume.base(),
            budget,
            attributes: Attributes::new(watchers.options.attributes()),
            watchers,
            made: Vec::new(),
        };
        let targets = sources.iter().filter_map(|source| maker.target(source, directory, place)).collect();
        (targets, Parents { made: maker.made })
    }

    /// Gives the directories their attributes, the deepest first.
    pub(super) fn finish<V: Volume<Dir = D>>(self, copier: &Copier<'_, V>) {
        for parent in self.made.iter().rev() {
            let fresh = parent.is_new;
            let wanted = parent.gets_attributes
                && (copier.attributes.options.preserve.any()
                    || parent.place.made_with().is_some()
                    || (fresh && copier.attributes.finishes_directory(&parent.metadata)));
            if !wanted || parent.place.origin == Origin::Imagined {
                continue;
            }
            let mut report = |trouble, errno| {
                copier.watchers.problem(&Problem {
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
                    // As in GNU's tool, an inherited access control list stays if the mode is not preserved.
                    let may_have_acl = copier.attributes.options.preserve.mode;
                    let made_with = parent.place.made_with();
                    let before = Before {
                        metadata: &metadata,
                        made_with,
                        fresh,
                        may_have_acl,
                        lacks_attribute: false,
                        replaced_mode: None,
                    };
                    copier.attributes.set(&file, &parent.metadata, &parent.acls, before, &mut report);
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
        let mut chain = Vec::new();
        let mut is_just_made = false;
        let walked = parents.iter().try_for_each(|component| {
            below = joined(&below, component);
            let leading = [&path[..start], &below[..]].concat();
            let destination = joined(directory.to_bytes(), &below);
            let known = self.made.len();
            let at = self.parent(&place, component, leading, destination)?;
            is_just_made = at >= known && self.made[at].is_new;
            place = Arc::clone(&self.made[at].place);
            chain.push(at);
            Done::Ok(())
        });
        if chain.iter().any(|&at| self.made[at].is_new) {
            chain.into_iter().for_each(|at| self.made[at].gets_attributes = true);
        }
        walked.ok()?;
        let name = CString::new(name).unwrap_or_default();
        let path = joined(directory.to_bytes(), &path[start..end]);
        if is_just_made
            && matches!(name.to_bytes(), b"." | b"..")
            && self.watchers.options.directories == Directories::Copy
        {
            // GNU's tool makes all that is in a new directory, and this is there.
            self.problem(Trouble::CreateDirectory, source.to_bytes(), &path, Some(Errno::EXIST));
            return None;
        }
        Some(Target { source: source.clone(), path, place, name })
    }

    /// Finds the entry of `made` for the directory `name` in `above`.
    fn parent(
        &mut self,
        above: &Arc<Place<V::Dir>>,
        name: &[u8],
        source: Vec<u8>,
        destination: Vec<u8>,
    ) -> Done<usize> {
        let known = self.made.iter().position(|parent| parent.destination == destination);
        if let Some(at) = known {
            return Ok(at);
        }
        let name = CString::new(name).unwrap_or_default();
        let source_name = CString::new(source.clone()).unwrap_or_default();
        let metadata =
            self.base.metadata(&source_name, SymlinkBehavior::Follow, Fields::STAT).map_err(|error| {
                self.problem(Trouble::ParentAttributes, &source, &destination, Some(error.errno))
            })?;
        if metadata.kind() != FileKind::Directory {
            let errno = Some(Errno::NOTDIR);
            return Err(self.problem(Trouble::ParentAttributes, &source, &destination, errno));
        }
        let acls = self.attributes.gather_acls(
            &|acl| self.base.get_xattr(&source_name, acl, SymlinkBehavior::Follow),
            &mut |trouble, errno| {
                self.problem(trouble, &source, &destination, Some(errno));
            },
        );
        let origin = self.make_directory(above, &name, &metadata, &source, &destination)?;
        let is_new = origin == Origin::Made;
        let place = Place::leading(above, &name, origin);
        let gets_attributes = false;
        self.made.push(Parent { place, source, destination, metadata, acls, is_new, gets_attributes });
        Ok(self.made.len() - 1)
    }

    fn make_directory(
        &self,
        above: &Place<V::Dir>,
        name: &CStr,
        metadata: &Metadata,
        source: &[u8],
        destination: &[u8],
    ) -> Done<Origin> {
        let failed =
            |error: Error| self.problem(Trouble::CreateParent, source, destination, Some(error.errno));
        let found = above
            .handle(self.budget)
            .and_then(|above| above.metadata(name, SymlinkBehavior::Follow, Fields::KIND));
        match found {
            Ok(found) if found.kind() == FileKind::Directory => return Ok(Origin::Found),
            Ok(_) => return Err(self.problem(Trouble::ParentNotDirectory, source, destination, None)),
            Err(error) if error.errno == Errno::NOENT => {}
            Err(error) => return Err(failed(error)),
        }
        let mut origin = Origin::Imagined;
        if self.watchers.options.effect == Execution::Real {
            above
                .handle(self.budget)
                .and_then(|above| above.create_dir(name, self.attributes.creation_mode(metadata)))
                .map_err(failed)?;
            origin = Origin::Made;
        }
        let mut line = Vec::new();
        self.watchers.options.trace.parent(source, destination, self.watchers.options.effect, &mut line);
        if !line.is_empty() {
            self.watchers.sink.lines(&line);
        }
        Ok(origin)
    }

    fn problem(&self, trouble: Trouble, source: &[u8], destination: &[u8], errno: Option<Errno>) -> Reported {
        self.watchers.problem(&Problem { trouble, source, destination, errno })
    }
}
