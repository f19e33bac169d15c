#![forbid(unsafe_code)]
//! The operations behind the command line tools and the Spark integration, as a library over [`millstream_walk`]. Each
//! operation is one module. It works through the traversal and knows no particular volume.

pub mod accounts;
pub mod activity;
pub mod attributes;
pub mod compact;
mod content;
pub mod copy;
pub mod du;
pub mod enumerate;
pub mod exchange;
pub mod find;
pub mod index;
pub mod json;
pub mod list;
pub mod mode;
mod names;
mod operands;
pub mod quote;
pub mod recompress;
pub mod remove;
pub mod size;
mod sticky;
pub mod sync;
pub mod table_logs;
pub mod terms;
pub mod time;
mod transfer;
pub mod tree;
