//! Analysis of an expression before it is evaluated: a better order, the attributes it needs, its effects.

use millstream_vfs::Fields;
use millstream_walk::{FanOut, FollowPolicy};

use super::expression::{Action, Expr, GlobalOptions, Leaf, MountPoints, StreamId, Test, VisitOrder};
use super::format::{Attribute, Field};
use super::moment::TimeField;
use millstream_operation::terms::FileSystems;

/// An expression, and the properties that a traversal needs.
#[derive(Debug)]
pub(super) struct Plan {
    pub options: GlobalOptions,
    pub expression: Expr,
    /// Attributes that the expression may ask for, fetched in one call.
    pub fields: Fields,
    /// Attributes of directories that the traversal itself needs.
    pub directory_fields: Option<Fields>,
    /// Whether examining an entry may call the volume.
    pub fan_out: FanOut,
    /// Whether entries act one at a time.
    pub actions: ActionOrder,
    /// Whether commands are run.
    pub commands: Commands,
    /// The order in which operands are traversed.
    pub operands: OperandOrder,
}

/// Whether the actions of different entries may happen at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActionOrder {
    /// They may: each only prints, or removes its own file.
    Parallel,
    /// Each entry acts alone, from its first side effect to the end of its evaluation.
    OneAtATime,
}

/// The order in which operands are traversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperandOrder {
    /// All at the same time.
    Together,
    /// One after the other: `-quit` in one keeps later ones from being examined.
    InTurn,
}

/// Whether an expression runs commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commands {
    /// It has `-exec` or a related action.
    Run,
    /// It does not.
    None,
}

impl Plan {
    /// Orders and analyses an expression.
    pub fn new(options: GlobalOptions, expression: Expr) -> Self {
        let expression = reorder(expression);
        let mut plan = Plan {
            fields: Fields::empty(),
            directory_fields: directory_fields(&options),
            fan_out: match (options.follow, options.mount_points) {
                (FollowPolicy::Always, _) | (_, MountPoints::LeaveOut) => FanOut::Parallel,
                (FollowPolicy::Never | FollowPolicy::Operands, MountPoints::Evaluate) => FanOut::Inline,
            },
            actions: ActionOrder::Parallel,
            commands: Commands::None,
            operands: OperandOrder::Together,
            options,
            expression: Expr::Test(Test::True),
        };
        expression.for_each_leaf(&mut |leaf| plan.look_at(leaf));
        if let (Some(fields), VisitOrder::PostOrder) = (&mut plan.directory_fields, plan.options.visits) {
            *fields |= plan.fields;
        }
        if plan.options.visits == VisitOrder::PostOrder && !plan.fields.is_empty() {
            // A directory is judged by its state before its contents were processed.
            plan.directory_fields.get_or_insert(plan.fields);
        }
        plan.expression = expression;
        plan
    }

    fn look_at(&mut self, leaf: Leaf<'_>) {
        let (fields, calls) = match leaf {
            Leaf::Test(test) => needs_of_test(test),
            Leaf::Action(action) => needs_of_action(action),
        };
        self.fields |= fields;
        if !fields.is_empty() || calls == Calls::Volume {
            self.fan_out = FanOut::Parallel;
        }
        if let Leaf::Action(action) = leaf {
            match action {
                Action::Quit => {
                    self.actions = ActionOrder::OneAtATime;
                    self.operands = OperandOrder::InTurn;
                }
                Action::Exec(_) => {
                    self.actions = ActionOrder::OneAtATime;
                    self.commands = Commands::Run;
                }
                Action::Print { stream, .. }
                | Action::Printf { stream, .. }
                | Action::List { stream, .. }
                    if *stream != StreamId::STDOUT =>
                {
                    self.actions = ActionOrder::OneAtATime;
                }
                _ => {}
            }
        }
    }
}

fn directory_fields(options: &GlobalOptions) -> Option<Fields> {
    let loops = options.follow == FollowPolicy::Always;
    let devices = options.file_systems == FileSystems::One;
    match (loops, devices) {
        (true, _) => Some(Fields::KIND | Fields::INO),
        (false, true) => Some(Fields::KIND),
        (false, false) => None,
    }
}

/// Whether a leaf calls the volume for anything other than attributes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    Volume,
    Nothing,
}

fn needs_of_test(test: &Test) -> (Fields, Calls) {
    let fields = match test {
        Test::True | Test::False | Test::Name(_) | Test::Path(_) | Test::Regex(_) | Test::Kind(_) => {
            Fields::empty()
        }
        Test::LinkTarget(_) | Test::OtherKind(_) | Test::Permission(_) => {
            return (Fields::empty(), Calls::Volume);
        }
        Test::Empty => Fields::SIZE,
        Test::FsType(_) => Fields::KIND,
        Test::Uid(_) | Test::NoUser => Fields::UID,
        Test::Gid(_) | Test::NoGroup => Fields::GID,
        Test::Links(_) => Fields::NLINK,
        Test::Inode(_) | Test::SameFile { .. } => Fields::INO,
        Test::Size { .. } => Fields::SIZE,
        Test::Mode(_) => Fields::MODE,
        Test::Time { which, .. } => field_of_time(*which),
        Test::Used(_) => Fields::ATIME | Fields::CTIME,
    };
    (fields, Calls::Nothing)
}

fn needs_of_action(action: &Action) -> (Fields, Calls) {
    match action {
        Action::Print { .. } | Action::Prune | Action::Quit | Action::Exec(_) => {
            (Fields::empty(), Calls::Nothing)
        }
        Action::Delete => (Fields::empty(), Calls::Volume),
        Action::List { .. } | Action::Record => (Fields::STAT, Calls::Volume),
        Action::Printf { format, .. } => {
            let fields = format.fields().fold(Fields::empty(), |all, field| all | needs_of_field(field));
            let links = format.fields().any(|field| field == Field::LinkTarget);
            (fields, if links { Calls::Volume } else { Calls::Nothing })
        }
    }
}

/// The attributes that a field of a format shows.
pub(super) fn needs_of_field(field: Field) -> Fields {
    match field {
        Field::Path
        | Field::BaseName
        | Field::DirName
        | Field::PathBelowOperand
        | Field::Operand
        | Field::Depth
        | Field::Kind
        | Field::LinkTarget
        | Field::SecurityContext => Fields::empty(),
        Field::TargetKind => Fields::KIND,
        Field::Attribute(attribute) => needs_of_attribute(attribute),
    }
}

fn needs_of_attribute(attribute: Attribute) -> Fields {
    match attribute {
        Attribute::Device | Attribute::FsType => Fields::KIND,
        Attribute::Size => Fields::SIZE,
        Attribute::Blocks512 | Attribute::Blocks1024 => Fields::BLOCKS,
        Attribute::Sparseness => Fields::BLOCKS | Fields::SIZE,
        Attribute::Links => Fields::NLINK,
        Attribute::Inode => Fields::INO,
        Attribute::ModeOctal | Attribute::ModeSymbolic => Fields::KIND | Fields::MODE,
        Attribute::User | Attribute::Uid => Fields::UID,
        Attribute::Group | Attribute::Gid => Fields::GID,
        Attribute::Time(which) | Attribute::TimePart(which, _) => field_of_time(which),
    }
}

fn field_of_time(which: TimeField) -> Fields {
    match which {
        TimeField::Access => Fields::ATIME,
        TimeField::Birth => Fields::BTIME,
        TimeField::Change => Fields::CTIME,
        TimeField::Modification => Fields::MTIME,
    }
}

/// Flattens nested lists, drops tests that are always true, and evaluates cheap tests before expensive ones.
///
/// Only tests between two actions are reordered, never an action, and only tests of the name move before a test that
/// may print an error.
fn reorder(expr: Expr) -> Expr {
    match expr {
        Expr::And(all) => {
            let mut flat = Vec::new();
            for part in all.into_iter().map(reorder) {
                match part {
                    Expr::And(inner) => flat.extend(inner),
                    Expr::Test(Test::True) => {}
                    other => flat.push(other),
                }
            }
            match flat.len() {
                0 => Expr::Test(Test::True),
                1 => flat.remove(0),
                _ => Expr::And(sort_runs(flat)),
            }
        }
        Expr::Or(all) => {
            let mut flat = Vec::new();
            for part in all.into_iter().map(reorder) {
                match part {
                    Expr::Or(inner) => flat.extend(inner),
                    other => flat.push(other),
                }
            }
            Expr::Or(sort_runs(flat))
        }
        Expr::Comma(all) => Expr::Comma(all.into_iter().map(reorder).collect()),
        Expr::Not(inner) => Expr::Not(Box::new(reorder(*inner))),
        leaf => leaf,
    }
}

/// Sorts the runs of tests between actions.
fn sort_runs(mut all: Vec<Expr>) -> Vec<Expr> {
    for run in all.chunk_by_mut(|a, b| cost(a).is_some() && cost(b).is_some()) {
        run.sort_by_key(|expr| cost(expr) > Some(Cost::NAME));
        for quiet in run.chunk_by_mut(|a, b| cost(a) < Some(Cost::NOISY) && cost(b) < Some(Cost::NOISY)) {
            quiet.sort_by_key(cost);
        }
    }
    all
}

/// The rough cost of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cost(u32);

impl Cost {
    /// Only the name is examined.
    const NAME: Cost = Cost(1);
    /// It calls the volume, and a failure may have to be reported.
    const NOISY: Cost = Cost(100);
}

/// `None` for an action, and for an expression that contains one.
fn cost(expr: &Expr) -> Option<Cost> {
    match expr {
        Expr::And(all) | Expr::Or(all) | Expr::Comma(all) => {
            all.iter().try_fold(Cost(0), |most, part| Some(most.max(cost(part)?)))
        }
        Expr::Not(inner) => cost(inner),
        Expr::Action(_) => None,
        Expr::Test(test) => Some(match test {
            Test::True | Test::False => Cost(0),
            Test::Name(_) => Cost::NAME,
            Test::Kind(_) => Cost(2),
            Test::Path(_) => Cost(3),
            Test::Regex(_) => Cost(4),
            Test::Links(_)
            | Test::Inode(_)
            | Test::SameFile { .. }
            | Test::Size { .. }
            | Test::Mode(_)
            | Test::Time { .. }
            | Test::Used(_)
            | Test::Uid(_)
            | Test::Gid(_) => Cost(10),
            Test::NoUser | Test::NoGroup => Cost(11),
            Test::FsType(_) => Cost(12),
            Test::Permission(_) => Cost(20),
            Test::LinkTarget(_) | Test::OtherKind(_) | Test::Empty => Cost::NOISY,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::environment::Nothing;
    use super::super::parser::parse;
    use super::super::words::Warnings;
    use super::*;

    fn plan(words: &str) -> Plan {
        let args: Vec<_> =
            words.split_whitespace().map(|word| std::ffi::CString::new(word).expect("no NUL")).collect();
        let parsed = parse(&args, Warnings::Off, &mut Nothing::default()).expect("valid");
        Plan::new(parsed.options, parsed.expression)
    }

    /// The leaves by their first letters.
    fn order(plan: &Plan) -> String {
        let mut order = Vec::new();
        plan.expression.for_each_leaf(&mut |leaf| {
            let name = match leaf {
                Leaf::Test(test) => format!("{test:?}"),
                Leaf::Action(action) => format!("{action:?}"),
            };
            order.push(name.split(['(', ' ']).next().unwrap_or_default().to_lowercase());
        });
        order.join(" ")
    }

    #[test]
    fn only_what_is_needed_is_fetched() {
        for (words, fields, fan_out) in [
            ("", Fields::empty(), FanOut::Inline),
            ("-type f", Fields::empty(), FanOut::Inline),
            ("-name x -o -path y", Fields::empty(), FanOut::Inline),
            ("-size +1", Fields::SIZE, FanOut::Parallel),
            (
                "-mtime 1 ( -uid 0 -o -perm 644 )",
                Fields::MTIME | Fields::UID | Fields::MODE,
                FanOut::Parallel,
            ),
            ("-printf %p%s%y", Fields::SIZE, FanOut::Parallel),
            ("-delete", Fields::empty(), FanOut::Parallel),
            ("-readable", Fields::empty(), FanOut::Parallel),
            ("-follow", Fields::empty(), FanOut::Parallel),
            ("-ls", Fields::STAT, FanOut::Parallel),
        ] {
            let plan = plan(words);
            assert_eq!((plan.fields, plan.fan_out), (fields, fan_out), "{words}");
        }
    }

    #[test]
    fn cheap_tests_come_first_and_nothing_passes_an_action() {
        for (words, expected) in [
            ("-size 1 -type f -name x", "name kind size print"),
            ("-size 1 -print -name x", "size print name"),
            ("-empty -type f", "empty kind print"),
            ("-empty -type f -name x", "name empty kind print"),
            ("-size 1 ( -name a -o -name b )", "name name size print"),
            ("-size 1 -prune -name a", "size prune name print"),
            ("-size 1 , -name a", "size name print"),
            ("-true -true", "print"),
        ] {
            assert_eq!(order(&plan(words)), expected, "{words}");
        }
    }

    #[test]
    fn only_prints_and_removals_act_in_parallel() {
        for (words, expected) in [
            ("-print", ActionOrder::Parallel),
            ("-delete", ActionOrder::Parallel),
            ("-ls -printf x -print0 -prune", ActionOrder::Parallel),
            ("-print -quit", ActionOrder::OneAtATime),
            ("-exec true ;", ActionOrder::OneAtATime),
            ("-execdir true {} +", ActionOrder::OneAtATime),
        ] {
            assert_eq!(plan(words).actions, expected, "{words}");
        }
    }
}
