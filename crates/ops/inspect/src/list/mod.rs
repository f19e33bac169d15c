//! Directory listings.
//!
//! ```text
//!  chunk ──► gather: stat, xattrs, link targets, as few as the listing needs ──► rows, kept in parts
//!  last chunk of a directory ──► order ──► long | grid, with paint for names ──► block ──► output, in order
//! ```
//!
//! Memory: a directory is held until its last entry is known, because sorting and columns need all of it. A sorted
//! listing of names takes 40 bytes per entry plus the name; `-l` takes 104 plus the name and the targets of links.
//! Outside the C locale the sort keys come on top, and so does the directory's text once it is formatted. A listing in
//! directory order, one name per line, holds one batch of names. With `-R`, waiting output is bounded
//! by [`MAX_WAITING_BYTES`].

mod block;
pub mod color;
mod gather;
mod grid;
mod long;
pub mod options;
mod order;
mod output;
mod owners;
mod paint;
pub mod report;
mod rows;
mod tree;
mod version;
mod visitor;

use std::ffi::CString;
use std::io::{self, Write};

use millstream_vfs::Volume;
use millstream_walk::{Cancellation, Descent, FollowPolicy, Order, WalkOptions, WalkStats, walk};

pub use options::ListOptions;
pub use output::Flush;
pub use report::{Console, Severity};
pub use tree::TreeForm;

use millstream_text::quote::{Quoter, QuotingStyle};
use options::{Depth, Dereference};
use output::Output;
use owners::{AccountStyle, SharedOwners};
use paint::Painter;
use report::Diagnostics;
use tree::TreePrinter;
use visitor::Lister;

use millstream_operation::activity::Activity;

/// Bytes of finished output that may wait to be written.
pub const MAX_WAITING_BYTES: usize = 64 << 20;

/// The result of a listing.
#[derive(Debug)]
pub struct Outcome {
    /// The worst failure, which is the exit code.
    pub severity: Severity,
    /// The first error of the output, after which nothing more was written.
    pub output_error: Option<io::Error>,
    /// Statistics of the traversal.
    pub stats: WalkStats,
}

/// The outputs of a listing.
pub struct Sinks<'a> {
    /// Receives the listing.
    pub writer: Box<dyn Write + Send + 'a>,
    /// When it is written.
    pub flush: Flush,
    /// Receives messages, immediately.
    pub console: Console<'a>,
    /// Counts progress.
    pub activity: &'a Activity,
}

/// Lists `operands` as GNU `ls` does.
pub fn list<V: Volume>(volume: &V, operands: &[CString], options: &ListOptions, sinks: Sinks<'_>) -> Outcome {
    let order = Order::DepthFirst { max_waiting_bytes: MAX_WAITING_BYTES };
    run(options, sinks, |parts| {
        let painter = Painter::new(options, parts.quoter);
        let lister = Lister::<V>::new(options, &painter, parts, operands.len());
        let descent = if options.depth == Depth::Tree { Descent::Unlimited } else { Descent::Operands };
        let walk_options = WalkOptions { descent, ..parts.walk_options(options, order) };
        walk(volume, operands, &lister, &walk_options)
    })
}

/// Prints the trees below `operands` in machine-readable form, see [`TreeForm`].
pub fn print_trees<V: Volume>(
    volume: &V,
    operands: &[CString],
    form: TreeForm,
    options: &ListOptions,
    sinks: Sinks<'_>,
) -> Outcome {
    run(&ListOptions { colors: None, dired: false, ..options.clone() }, sinks, |parts| {
        let printer = TreePrinter::<V>::new(form, options, parts);
        walk(volume, operands, &printer, &parts.walk_options(options, Order::Completion))
    })
}

/// The state shared by the visitors of a listing.
#[derive(Debug)]
struct Shared<'a, 'o> {
    quoter: Quoter,
    owners: SharedOwners,
    diagnostics: Diagnostics<'a>,
    output: Output<'o>,
    activity: &'a Activity,
    cancellation: Cancellation,
}

impl Shared<'_, '_> {
    fn walk_options(&self, options: &ListOptions, order: Order) -> WalkOptions {
        WalkOptions {
            threads: options.threads,
            follow: follow_policy(options.dereference),
            order,
            cancellation: self.cancellation.clone(),
            ..WalkOptions::default()
        }
    }
}

fn run(
    options: &ListOptions,
    sinks: Sinks<'_>,
    traverse: impl FnOnce(&Shared<'_, '_>) -> WalkStats,
) -> Outcome {
    let quoter = Quoter { style: options.quoting, control: options.control, locale: options.locale };
    let style = if options.columns.numeric_ids { AccountStyle::Numbers } else { AccountStyle::Names };
    let cancellation = Cancellation::default();
    let shared = Shared {
        quoter,
        owners: SharedOwners::new(style, quoter),
        diagnostics: Diagnostics::new(sinks.console, options.locale),
        output: Output::new(sinks.writer, sinks.flush, cancellation.clone()),
        activity: sinks.activity,
        cancellation,
    };
    let stats = traverse(&shared);
    let dired_style = options.dired.then_some(style_name(options.quoting));
    let written = shared.output.finish(options.colors.as_ref(), dired_style);
    Outcome { severity: shared.diagnostics.worst(), output_error: written.err(), stats }
}

/// Operands listed as directories are always entered through links; links that must not be entered are listed as files.
fn follow_policy(dereference: Dereference) -> FollowPolicy {
    match dereference {
        Dereference::Always => FollowPolicy::Always,
        _ => FollowPolicy::Operands,
    }
}

/// The name of a quoting style, as `--quoting-style` takes it.
pub fn style_name(style: QuotingStyle) -> &'static str {
    match style {
        QuotingStyle::Literal => "literal",
        QuotingStyle::Shell => "shell",
        QuotingStyle::ShellAlways => "shell-always",
        QuotingStyle::ShellEscape => "shell-escape",
        QuotingStyle::ShellEscapeAlways => "shell-escape-always",
        QuotingStyle::C => "c",
        QuotingStyle::CMaybe => "c-maybe",
        QuotingStyle::Escape => "escape",
        QuotingStyle::Locale => "locale",
        QuotingStyle::Clocale => "clocale",
    }
}
