//! How the data of a file was moved (`--debug`).

use std::sync::atomic::{AtomicU8, Ordering};

use super::options::{Options, Reflink, Sparse};

/// A method that was used, or tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// The copy shares the data.
    Clone = 1,
    /// The volume cannot make files share data.
    CloneRefused = 2,
    /// The volume copied.
    Offload = 4,
    /// The volume cannot copy.
    OffloadRefused = 8,
    /// Data was read and written.
    ReadAndWrite = 16,
    /// The volume told data from holes.
    SkipHoles = 32,
}

/// The methods used for one file, by one or several threads.
#[derive(Debug, Default)]
pub(super) struct Methods(AtomicU8);

impl Methods {
    pub(super) fn note(&self, means: Means) {
        self.0.fetch_or(means as u8, Ordering::Relaxed);
    }

    fn has(&self, means: Means) -> bool {
        self.0.load(Ordering::Relaxed) & means as u8 != 0
    }

    /// Appends the explanation, in GNU's words.
    pub(super) fn explain(&self, options: &Options, out: &mut Vec<u8>) {
        let words = ["copy offload: ", self.offload(options), ", reflink: ", self.reflink(options)];
        let line = [words.concat().as_str(), ", sparse detection: ", self.detection(options), "\n"].concat();
        out.extend_from_slice(line.as_bytes());
    }

    fn offload(&self, options: &Options) -> &'static str {
        let moved = self.has(Means::ReadAndWrite);
        match options.may_offload() {
            _ if self.has(Means::Offload) => "yes",
            _ if self.has(Means::OffloadRefused) => "unsupported",
            true if moved => "no",
            false if moved || !self.has(Means::SkipHoles) => "avoided",
            _ => "unknown",
        }
    }

    fn reflink(&self, options: &Options) -> &'static str {
        match options.reflink {
            _ if self.has(Means::Clone) => "yes",
            _ if self.has(Means::CloneRefused) => "unsupported",
            Reflink::Never => "no",
            _ if options.sparse != Sparse::Auto => "no",
            _ => "unknown",
        }
    }

    fn detection(&self, options: &Options) -> &'static str {
        let seeks_zeros = options.sparse == Sparse::Always && self.has(Means::ReadAndWrite);
        match (self.has(Means::Clone), self.has(Means::SkipHoles), seeks_zeros) {
            (true, ..) => "unknown",
            (_, true, true) => "SEEK_HOLE + zeros",
            (_, true, false) => "SEEK_HOLE",
            (_, false, true) => "zeros",
            (_, false, false) => "no",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_and_what_the_options_forbid_are_told() {
        use Means::{Clone, CloneRefused, Offload, OffloadRefused, ReadAndWrite, SkipHoles};
        let auto = Options::default();
        let never = Options { reflink: Reflink::Never, ..Options::default() };
        let dense = Options { sparse: Sparse::Never, ..Options::default() };
        let sparse = Options { sparse: Sparse::Always, ..Options::default() };
        for (options, done, expected) in [
            (&auto, &[CloneRefused, Offload][..], ["yes", "unsupported", "no"]),
            (&auto, &[CloneRefused, OffloadRefused, ReadAndWrite], ["unsupported", "unsupported", "no"]),
            (&auto, &[CloneRefused, ReadAndWrite], ["no", "unsupported", "no"]),
            (&auto, &[CloneRefused, SkipHoles, Offload], ["yes", "unsupported", "SEEK_HOLE"]),
            (&auto, &[Clone], ["unknown", "yes", "unknown"]),
            (&auto, &[], ["unknown", "unknown", "no"]),
            (&never, &[ReadAndWrite], ["avoided", "no", "no"]),
            (&never, &[SkipHoles], ["unknown", "no", "SEEK_HOLE"]),
            (&dense, &[ReadAndWrite], ["avoided", "no", "no"]),
            (&sparse, &[ReadAndWrite], ["avoided", "no", "zeros"]),
            (&sparse, &[SkipHoles, ReadAndWrite], ["avoided", "no", "SEEK_HOLE + zeros"]),
        ] {
            let methods = Methods::default();
            done.iter().for_each(|&means| methods.note(means));
            let mut line = Vec::new();
            methods.explain(options, &mut line);
            let [offload, reflink, detection] = expected;
            let expected =
                format!("copy offload: {offload}, reflink: {reflink}, sparse detection: {detection}\n");
            assert_eq!(String::from_utf8_lossy(&line), expected, "{done:?}");
        }
    }
}
