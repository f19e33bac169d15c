//! Directory listings.
