//! What `strace -f -o` has written.

use std::collections::HashMap;

/// The calls, `unlinkat(4, "file", 0) = 0`, in the order in which they ended. A call during which another thread was
/// heard of stands in two lines, `7 unlinkat(4, "file", 0 <unfinished ...>` and `7 <... unlinkat resumed>) = 0`. Of a
/// thread that ends with its process, `strace` may not know any more in what call it was: `7 ???( <detached ...>`. That
/// is none.
pub fn calls(trace: &str) -> Vec<String> {
    let mut begun = HashMap::new();
    let mut calls = Vec::new();
    for line in trace.lines() {
        let (thread, event) = line.split_once(' ').expect("a thread and what it did");
        let event = event.trim_start();
        if let Some(first) = event.strip_suffix("<unfinished ...>") {
            begun.insert(thread, first.trim_end());
        } else if let Some((_, rest)) =
            event.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>"))
        {
            calls.push(format!("{}{rest}", begun.remove(thread).expect("the call's first line")));
        } else if !event.starts_with(['+', '-']) {
            calls.push(event.to_owned());
        }
    }
    calls.retain(|call| !call.starts_with("???"));
    calls
}
