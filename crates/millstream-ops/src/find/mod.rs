//! Evaluation of `find` expressions over a traversal.
