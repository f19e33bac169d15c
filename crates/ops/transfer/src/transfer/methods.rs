//! How the data of a file was moved (`--debug`).

use std::sync::atomic::{AtomicU8, Ordering};

use super::options::{DataOptions, Reflink, Sparse};

/// A method that was used, or tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
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
pub(crate) struct Methods(AtomicU8);

impl Methods {
    pub(crate) fn note(&self, means: Means) {
        self.0.fetch_or(means as u8, Ordering::Relaxed);
    }

    fn has(&self, means: Means) -> bool {
        self.0.load(Ordering::Relaxed) & means as u8 != 0
    }

    /// Appends the explanation, in GNU's words.
    pub(crate) fn explain(&self, options: &DataOptions, out: &mut Vec<u8>) {
        let words = ["copy offload: ", self.offload(options), ", reflink: ", self.reflink(options)];
        let line = [words.concat().as_str(), ", sparse detection: ", self.detection(options), "\n"].concat();
        out.extend_from_slice(line.as_bytes());
    }

    fn offload(&self, options: &DataOptions) -> &'static str {
        let moved = self.has(Means::ReadAndWrite);
        match options.may_offload() {
            _ if self.has(Means::Offload) => "yes",
            _ if self.has(Means::OffloadRefused) => "unsupported",
            true if moved => "no",
            false if moved || !self.has(Means::SkipHoles) => "avoided",
            _ => "unknown",
        }
    }

    fn reflink(&self, options: &DataOptions) -> &'static str {
        match options.reflink {
            _ if self.has(Means::Clone) => "yes",
            _ if self.has(Means::CloneRefused) => "unsupported",
            Reflink::Never => "no",
            _ if options.sparse != Sparse::Auto => "no",
            _ => "unknown",
        }
    }

    fn detection(&self, options: &DataOptions) -> &'static str {
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
    use millstream_walk::Cancellation;

    use super::*;

    fn options(reflink: Reflink, sparse: Sparse) -> DataOptions {
        DataOptions { reflink, sparse, bytes_per_second: None, cancellation: Cancellation::default() }
    }

    #[test]
    fn what_was_done_and_what_the_options_forbid_are_told() {
        use Means::{Clone, CloneRefused, Offload, OffloadRefused, ReadAndWrite, SkipHoles};
        let auto = options(Reflink::Auto, Sparse::Auto);
        let never = options(Reflink::Never, Sparse::Auto);
        let dense = options(Reflink::Auto, Sparse::Never);
        let sparse = options(Reflink::Auto, Sparse::Always);
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
