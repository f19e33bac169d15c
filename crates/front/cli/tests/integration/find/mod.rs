//! Trees, runs and random expressions for the tests of `pfind`.

pub mod bed;
pub mod expressions;
