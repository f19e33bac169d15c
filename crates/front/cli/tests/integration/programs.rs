//! Programs under test, in places where every user can run them.

use std::path::Path;
use std::process::Command;

/// Copies a program. Another process writes it: a descriptor of this one would be inherited by commands that other
/// tests start meanwhile, and as long as one of them has it the program is busy and cannot be started.
pub fn copy_program(from: &str, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status().expect("cp runs");
    assert!(copied.success(), "{from} to {}", to.display());
}
