//! Types of the mounted file systems, for `-fstype` and `%F`.

use std::collections::HashMap;

use rustix::fs::makedev;

/// Types of mounted file systems, by device number.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    types: HashMap<u64, Vec<u8>>,
}

impl Mounts {
    /// Asks the kernel.
    pub fn read() -> Self {
        match std::fs::read("/proc/self/mountinfo") {
            Ok(text) => Self::parse(&text),
            Err(_) => Self::default(),
        }
    }

    /// Parses lines of `mountinfo`: `id parent major:minor root point options [tags] - type source options`.
    pub fn parse(text: &[u8]) -> Self {
        let types = text.split(|&b| b == b'\n').filter_map(parse_line).collect();
        Mounts { types }
    }

    /// The type of the file system on a device.
    pub fn type_of(&self, dev: u64) -> &[u8] {
        self.types.get(&dev).map_or(b"unknown", Vec::as_slice)
    }
}

fn parse_line(line: &[u8]) -> Option<(u64, Vec<u8>)> {
    let mut words = line.split(|&b| b == b' ');
    let device = std::str::from_utf8(words.nth(2)?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let dev = makedev(major.parse().ok()?, minor.parse().ok()?);
    words.find(|word| *word == b"-")?;
    Some((dev, words.next()?.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mountinfo_is_understood() {
        let text = b"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
                     24 22 0:22 / /proc rw - proc proc rw\nnonsense\n";
        let mounts = Mounts::parse(text);
        assert_eq!(mounts.type_of(makedev(254, 0)), b"ext4");
        assert_eq!(mounts.type_of(makedev(0, 22)), b"proc");
        assert_eq!(mounts.type_of(makedev(1, 1)), b"unknown");
    }
}
