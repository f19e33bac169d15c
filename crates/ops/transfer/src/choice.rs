//! Options of which one is chosen.

/// Defines an enumeration of choices without data.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident $(($data:ty))?),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant $(($data))?),+ }
    };
}

pub(crate) use choice;
