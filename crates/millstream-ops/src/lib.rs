#![forbid(unsafe_code)]
//! What the tools and Spark do with a tree, as a library over [`millstream_walk`]: one module an operation, each knowing
//! the traversal and no volume.

pub mod accounts;
pub mod activity;
pub mod attributes;
pub mod compact;
pub mod copy;
pub mod du;
pub mod enumerate;
pub mod exchange;
pub mod find;
pub mod json;
pub mod list;
pub mod mode;
mod operands;
pub mod quote;
pub mod remove;
pub mod size;
pub mod terms;
pub mod time;
