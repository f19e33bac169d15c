//! Directory listings.

pub mod quote;
pub mod size;
pub mod time;
