//! Filter rules and lists of files against the real rsync, on random trees: the entries that are sent, the
//! entries that are deleted, and the rules that are refused.
//!
//! Seeds are printed; `MILLSTREAM_SEED` repeats a run, `FILTER_ROUNDS` (trees, of 10 cases each) makes it
//! longer.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::rsync::random::Random;
use crate::rsync::rules::{Argument, Case};
use crate::rsync::trees::{Kind, Node, Tree};
use crate::rsync::{Outcome, names, run};
use millstream_rsync_rules::Separator;
use millstream_rsync_rules::files::FileList;
use millstream_rsync_rules::filter::{Filter, Side, Subject, Unsided};

const CASES_PER_TREE: usize = 10;

fn rounds() -> usize {
    std::env::var("FILTER_ROUNDS").ok().map_or(20, |rounds| rounds.parse().expect("a number"))
}

/// Our answer to the same question: [`None`] if a rule is refused.
fn expected(tree: &Tree, case: &Case) -> Option<Outcome> {
    let filter = parse(tree, case)?;
    let mut outcome = Outcome::default();
    for node in &tree.nodes {
        send(tree, &filter, node, &mut outcome);
    }
    let sent = outcome.sent.clone();
    let is_kept = |node: &Node| sent.contains(&node.listed());
    for node in &tree.nodes {
        delete(tree, &filter, node, &is_kept, &mut outcome);
    }
    Some(outcome)
}

fn parse(tree: &Tree, case: &Case) -> Option<Filter> {
    let mut filter = Filter::default();
    let mut read = |file: &OsStr| fs::read(tree.directory().join(file));
    for argument in &case.arguments {
        match argument {
            Argument::Rule(rule) => filter.add_rule(rule, case.separator, &mut read),
            Argument::Pattern(effect, pattern) => filter.add_pattern(pattern, *effect),
            Argument::Patterns(effect, file) => {
                let content = fs::read(tree.directory().join(file)).expect("a file of patterns");
                filter.add_patterns(&content, case.separator, *effect)
            }
        }
        .ok()?;
    }
    if case.deletes_excluded {
        filter.apply_unsided(Unsided::Sender);
    }
    Some(filter)
}

fn is_included(tree: &Tree, filter: &Filter, side: Side, node: &Node, is_in_deleted: bool) -> bool {
    let root = tree.directory().join(if side == Side::Sender { "s" } else { "d" });
    let root = root.as_os_str().as_bytes().strip_prefix(b"/").expect("an absolute path");
    let is_directory = node.kind == Kind::Directory;
    filter.includes(side, &Subject { path: &node.path, root, is_directory, is_in_deleted })
}

fn send(tree: &Tree, filter: &Filter, node: &Node, outcome: &mut Outcome) {
    if node.in_source && is_included(tree, filter, Side::Sender, node, false) {
        outcome.sent.insert(node.listed());
        node.children.iter().for_each(|child| send(tree, filter, child, outcome));
    }
}

/// Deletes what was not sent from the directories that were.
fn delete(tree: &Tree, filter: &Filter, node: &Node, is_kept: &dyn Fn(&Node) -> bool, outcome: &mut Outcome) {
    if is_kept(node) {
        node.children.iter().for_each(|child| delete(tree, filter, child, is_kept, outcome));
    } else {
        remove(tree, filter, node, false, outcome);
    }
}

/// Whether nothing is left of an entry of the destination.
fn remove(tree: &Tree, filter: &Filter, node: &Node, is_in_deleted: bool, outcome: &mut Outcome) -> bool {
    if !node.in_destination {
        return true;
    }
    if !is_included(tree, filter, Side::Receiver, node, is_in_deleted) {
        return false;
    }
    let left = node.children.iter().filter(|child| !remove(tree, filter, child, true, outcome)).count();
    if left == 0 {
        outcome.deleted.insert(node.listed());
    }
    left == 0
}

#[test]
fn filter_rules_decide_as_those_of_rsync_do() {
    let mut random = Random::from_environment();
    let mut failures = Vec::new();
    let mut decided = 0;
    for _ in 0..rounds() {
        let tree = Tree::random(&mut random);
        for _ in 0..CASES_PER_TREE {
            let case = Case::random(&mut random, &tree);
            case.write_files(&tree);
            let mut command = case.options();
            command.extend(["--delete", "s/", "d/"].map(Into::into));
            let theirs = run(&tree, &command).ok();
            let ours = expected(&tree, &case);
            decided += usize::from(ours.as_ref().is_some_and(|ours| ours.sent.len() < tree.sources()));
            if theirs != ours {
                failures.push(format!("{case}\nrsync: {theirs:?}\nours:  {ours:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n\n"));
    assert!(decided > rounds() * CASES_PER_TREE / 4, "only {decided} cases exclude anything");
}

#[test]
fn lists_of_files_hold_what_rsync_sends() {
    let mut random = Random::from_environment();
    let mut failures = Vec::new();
    for _ in 0..rounds().div_ceil(4) {
        let tree = Tree::random(&mut random);
        for _ in 0..CASES_PER_TREE {
            let separator = random.pick(&[Separator::Line, Separator::Nul]);
            let content = crate::rsync::rules::list(&mut random, &tree, separator);
            fs::write(tree.directory().join("list"), &content).expect("a list");
            let recurses = random.below(2) == 0;
            let mut command = vec!["--files-from=list".into()];
            command.extend((separator == Separator::Nul).then(|| "--from0".into()));
            command.push(if recurses { "-r".into() } else { "--no-r".into() });
            command.extend(["s/", "d/"].map(Into::into));
            let (theirs, missing) = run(&tree, &command).expect("a valid list").listed();

            let list = FileList::parse(&content, separator).expect("a valid list");
            let met: Vec<_> =
                tree.all().filter(|node| node.in_source).map(|node| (node, list.meet(&node.path))).collect();
            let has_listed = |parent: &Node| {
                let below = [&parent.path[..], b"/"].concat();
                met.iter().any(|(node, membership)| membership.is_listed && node.path.starts_with(&below))
            };
            let is_sent = |(node, membership): &&(&Node, _)| {
                let membership: &millstream_rsync_rules::files::Membership = membership;
                membership.is_listed
                    || membership.is_content
                    || membership.is_below && recurses
                    || membership.is_parent && has_listed(node)
            };
            let ours = met.iter().filter(is_sent).map(|(node, _)| node.listed()).collect();
            let lacking = list.missing().filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect();
            if (&theirs, &missing) != (&ours, &lacking) {
                failures.push(format!(
                    "{}, recursion: {recurses}\nrsync: {} lacks {}\nours:  {} lacks {}",
                    content.escape_ascii(),
                    names(&theirs),
                    names(&missing),
                    names(&ours),
                    names(&lacking)
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{} lists differ:\n{}", failures.len(), failures.join("\n\n"));
}
