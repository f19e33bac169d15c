//! The tools beside the programs that they replace, and what they do when things go wrong. All files are one program,
//! which is linked once and runs tests of all of them at the same time.

mod attributes;
mod closed_stdout;
mod copies;
mod find;
mod find_differential;
mod find_output;
mod help;
mod index;
mod link_chains;
mod ls_differential;
mod mounts;
mod newest;
mod pcopy;
mod pcopy_extensions;
mod pcopy_faults;
mod pcopy_swapped;
mod pdu;
mod pls_trees;
mod prm;
mod programs;
mod psync;
mod races;
mod random;
mod recompress;
mod scratch;
mod traces;
mod trees;
mod urls;
