//! Codecs.
/// A compression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// gzip
    Gzip,
}
impl Codec {
    /// Name.
    pub fn name(self) -> &'static str {
        "gzip"
    }
    /// Code.
    pub fn code(self) -> u8 {
        1
    }
    /// From code.
    pub fn from_code(code: u8) -> Option<Self> {
        (code == 1).then_some(Codec::Gzip)
    }
}
