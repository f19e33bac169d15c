//! Disk usage of trees.
