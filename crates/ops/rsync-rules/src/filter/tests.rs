use std::ffi::OsStr;
use std::io;

use super::*;
use crate::Separator;

/// Files that rules may merge.
type Files<'a> = &'a [(&'a str, &'a str)];

fn add(filter: &mut Filter, rule: &str, files: Files<'_>) -> Result<(), BadRule> {
    let mut read = |name: &OsStr| {
        let found = files.iter().find(|(file, _)| OsStr::new(file) == name);
        found.map(|(_, content)| content.as_bytes().to_vec()).ok_or(io::Error::from(io::ErrorKind::NotFound))
    };
    filter.add_rule(rule.as_bytes(), Separator::Line, &mut read)
}

fn filter(rules: &[&str], files: Files<'_>) -> Filter {
    let mut filter = Filter::default();
    rules.iter().for_each(|rule| add(&mut filter, rule, files).expect("a rule"));
    filter
}

fn refusal(rule: &str, files: Files<'_>) -> String {
    add(&mut Filter::default(), rule, files).expect_err(rule).to_string()
}

fn file(path: &str) -> Subject<'_> {
    Subject { path: path.as_bytes(), root: b"home/me", is_directory: false, is_in_deleted: false }
}

/// The sides on which a file takes part.
fn sides(filter: &Filter, path: &str) -> &'static str {
    match [Side::Sender, Side::Receiver].map(|side| filter.includes(side, &file(path))) {
        [true, true] => "both",
        [true, false] => "sender",
        [false, true] => "receiver",
        [false, false] => "none",
    }
}

#[test]
fn the_first_rule_that_matches_decides() {
    let filter = filter(&["- a*", "+ ab", "+ b", "- b", "- *.o", "+ c.o", "- d/c", "+ /d/c", "- zz"], &[]);
    for (path, expected) in [
        ("ab", "none"),
        ("b", "both"),
        ("x/b", "both"),
        ("c.o", "none"),
        ("d/c", "none"),
        ("zz", "none"),
        ("other", "both"),
    ] {
        assert_eq!(sides(&filter, path), expected, "{path}");
    }
}

#[test]
fn rules_are_for_the_sides_that_they_name() {
    for (rule, expected) in [
        ("- f", "none"),
        ("-_f", "none"),
        ("exclude f", "none"),
        ("exclude_f", "none"),
        ("-, f", "none"),
        ("-s f", "receiver"),
        ("exclude,s f", "receiver"),
        ("-r f", "sender"),
        ("-sr f", "none"),
        ("H f", "receiver"),
        ("hide f", "receiver"),
        ("P f", "sender"),
        ("protect,p f", "sender"),
        ("-! g", "none"),
        ("-! f", "both"),
        ("P! g", "sender"),
        ("-/ /home/me/f", "none"),
        ("-/ me/f", "none"),
        ("-/ /f", "both"),
        ("-  f", "both"),
        ("+ f", "both"),
        ("", "both"),
    ] {
        assert_eq!(sides(&filter(&[rule], &[]), "f"), expected, "{rule}");
        let after = ["+ f", "include f", "S f", "show f", "R f", "risk f"].map(|include| {
            let filter = filter(&[include, "- f"], &[]);
            sides(&filter, "f")
        });
        assert_eq!(after, ["both", "both", "sender", "sender", "receiver", "receiver"]);
    }
}

#[test]
fn deleting_excluded_entries_leaves_rules_without_a_side_to_the_sender() {
    let mut filter = filter(&["- a", "-p b", "-sr c", "P d", "+ e", "- e"], &[]);
    filter.apply_unsided(Unsided::Sender);
    let found = ["a", "b", "c", "d", "e"].map(|path| sides(&filter, path));
    assert_eq!(found, ["receiver", "receiver", "none", "sender", "both"]);
    add(&mut filter, "!", &[]).expect("a rule");
    add(&mut filter, "- a", &[]).expect("a rule");
    assert_eq!(sides(&filter, "a"), "receiver");
}

#[test]
fn perishable_rules_do_not_count_in_directories_that_are_deleted() {
    let filter = filter(&["-p f", "-p g*"], &[]);
    for path in ["f", "g"] {
        assert!(!filter.includes(Side::Receiver, &file(path)));
        assert!(filter.includes(Side::Receiver, &Subject { is_in_deleted: true, ..file(path) }));
    }
}

#[test]
fn patterns_of_options_and_lists() {
    let mut filter = Filter::default();
    for pattern in ["x", "!", "a", "+ b", "- - c", "", "-d", "! ", "H e"] {
        filter.add_pattern(pattern.as_bytes(), Effect::Exclude).expect("a pattern");
    }
    let found = ["x", "a", "b", "- c", "-d", "! ", "H e"].map(|path| sides(&filter, path));
    assert_eq!(found, ["both", "none", "both", "none", "none", "none", "none"]);
    filter.add_patterns(b"!\n#a\r;b\n\n- c\n+ d\nd\n", Separator::Line, Effect::Include).expect("patterns");
    filter.add_patterns(b"e\n\0\0#f\0g", Separator::Nul, Effect::Exclude).expect("patterns");
    let found = ["a", "c", "d", "e", "e\n", "g"].map(|path| sides(&filter, path));
    assert_eq!(found, ["both", "none", "both", "both", "none", "none"]);
    let refused = filter.add_pattern(b"- ", Effect::Include).expect_err("no pattern").to_string();
    assert_eq!(refused, "filter rule '- ': it has no pattern");
}

#[test]
fn merged_files_hold_rules_or_patterns() {
    for (rule, content, excluded) in [
        (". m", "- a\n#b\n\n;b\r\n- c", "a c"),
        ("merge m", "+ a\n- a\n- b", "b"),
        (".- m", "a\n#b\nc", "a c"),
        (".- m", "- a\n!", "!"),
        (".+ m", "a", ""),
        (".e m", "- a", "a m"),
        (".e m", "!\n- a", "a"),
        ("._m", "- b\n!\n- a", "a"),
        (".w m", "-_a\t-_b \n", "a b"),
        (".w m", "- a exclude b ! hide,! a", "b c m !"),
        (".-w m", "a #\n- b", "a b"),
        (".n m", "- a", "a"),
        (".s m", "- a", "a"),
        (".r m", "- a", ""),
        ("./ m", "- /a\n- me/b", "b"),
    ] {
        let filter = filter(&[rule], &[("m", content)]);
        let names = ["a", "b", "c", "m", "!"];
        let found: Vec<&str> =
            names.into_iter().filter(|name| !filter.includes(Side::Sender, &file(name))).collect();
        assert_eq!(found.join(" "), excluded, "{rule} {content:?}");
    }
}

#[test]
fn a_merged_file_is_excluded_by_its_name_on_both_sides() {
    let filter = filter(&["./psew rules/m"], &[("rules/m", "")]);
    assert_eq!(["m", "a/m"].map(|path| sides(&filter, path)), ["none", "none"]);
    assert!(!filter.includes(Side::Receiver, &Subject { is_in_deleted: true, ..file("m") }));
}

#[test]
fn files_merge_others() {
    let files = [("m", ". n\n- a\n"), ("n", "- b")];
    assert_eq!(["a", "b"].map(|path| sides(&filter(&[". m"], &files), path)), ["none", "none"]);
    assert_eq!(["a", "b"].map(|path| sides(&filter(&[".s m"], &files), path)), ["receiver", "receiver"]);
    let filter = filter(&[".ps m"], &files);
    for side in [Side::Sender, Side::Receiver] {
        let is_in_deleted = true;
        assert!(
            filter.includes(side, &Subject { is_in_deleted, ..file("b") }),
            "the rule is perishable, too"
        );
    }
    let refused = refusal(". m", &[("m", ". m")]);
    assert_eq!(refused, "filter rule '. m' in m: merged files are nested more than 32 levels deep");
}

#[test]
fn wrong_rules_are_refused() {
    for (rule, expected) in [
        ("foo", "a rule begins with -, +, H, S, P, R, ., !, or one of their long names"),
        ("excludes a", "a rule begins with -, +, H, S, P, R, ., !, or one of their long names"),
        ("-", "it has no pattern"),
        ("-s", "it has no pattern"),
        ("exclude ", "it has no pattern"),
        ("-foo", "the modifier 'f' does not apply here"),
        ("-w a", "the modifier 'w' does not apply here"),
        ("-s,r a", "the modifier ',' does not apply here"),
        ("Hs a", "the modifier 's' does not apply here"),
        ("P,r a", "the modifier 'r' does not apply here"),
        (".! m", "the modifier '!' does not apply here"),
        (".-+ m", "the modifier '+' does not apply here"),
        (".", "it does not name a file"),
        ("! ", "nothing may follow ! or clear"),
        ("clear,s", "nothing may follow ! or clear"),
        (". none", "entity not found"),
    ] {
        assert_eq!(refusal(rule, &[]), format!("filter rule '{rule}': {expected}"));
    }
    let two_sides = "it names a side, as does the rule that merges its file; only one of them may";
    assert_eq!(refusal(".s m", &[("m", "H a")]), format!("filter rule 'H a' in m: {two_sides}"));
    assert_eq!(refusal(".r m", &[("m", "\n.s n")]), format!("filter rule '.s n' in m: {two_sides}"));
}

#[test]
fn unsupported_rules_are_refused_with_a_replacement() {
    for (rule, replacement) in [
        (": .rules", "merge a single file with '. FILE'"),
        ("dir-merge,n .rules", "merge a single file with '. FILE'"),
        ("-C", "merge it with '.-w FILE'"),
        (":C", "merge a single file with '. FILE'"),
        (".C m", "merge it with '.-w FILE'"),
        ("-x user.a", "leave the rule out"),
    ] {
        let refused = refusal(rule, &[]);
        assert!(refused.starts_with(&format!("filter rule '{rule}': ")), "{refused}");
        assert!(refused.contains(" not supported; ") && refused.contains(replacement), "{refused}");
    }
}

#[test]
fn ten_thousand_names_are_found_by_hash() {
    let mut filter = Filter::default();
    for number in 0..10_000 {
        filter.add_pattern(format!("name-{number}").as_bytes(), Effect::Exclude).expect("a pattern");
        filter.add_pattern(b"core", Effect::Exclude).expect("a pattern");
        filter.add_pattern(format!("/a/path-{number}/").as_bytes(), Effect::Exclude).expect("a pattern");
    }
    assert_eq!(filter.others, []);
    // 60,000 queries would try 1,800,000,000 rules, one by one.
    for number in 0..20_000 {
        assert_eq!(sides(&filter, &format!("b/name-{}", number % 10_000)), "none");
        assert_eq!(sides(&filter, "b/core"), "none");
        assert_eq!(sides(&filter, "b/path-1"), "both");
    }
}

#[test]
fn the_index_of_literal_rules_keeps_their_order() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |bound: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).unwrap_or(0) % bound
    };
    let kinds = ["- ", "+ ", "H ", "P ", "-p ", "-! ", "-/ "];
    let names = ["a", "b", "/", "a", "b", "/"];
    let patterns = [&names[..], &["*", "**", "?", "[a]", "\\", "/***"]].concat();
    for round in 0..5_000 {
        let mut text =
            |pieces: &[&str]| (0..=random(4)).map(|_| pieces[random(pieces.len())]).collect::<String>();
        let rules: Vec<String> =
            (0..5).map(|at| kinds[(at * 3 + round) % 7].to_owned() + &text(&patterns)).collect();
        let paths: Vec<String> = (0..5).map(|_| text(&names)).collect();
        fuzz::filter(format!("{}\0\0{}", rules.join("\0"), paths.join("\0")).as_bytes());
    }
}

#[test]
fn texts_of_rules_are_those_of_the_same_filter() {
    let files: Files<'_> =
        &[("list", "a b\n#c\n+ d\n"), ("rules", "-s /x\n. deeper\n"), ("deeper", "R!p y/***\n")];
    let rules = [
        "- gone",
        "!",
        "exclude,/!  a_b",
        "H_\u{e9}",
        "-sr f",
        ".- list",
        "merge,pe rules",
        "P [[:alpha:]]*",
    ];
    let filter = filter(&rules, files);
    let texts: Vec<String> = filter.rules().map(|rule| String::from_utf8(rule).expect("UTF-8")).collect();
    let expected = [
        "-/!  a_b",
        "-s \u{e9}",
        "-sr f",
        "- a b",
        "- + d",
        "- rules",
        "-sp /x",
        "+r!p y/***",
        "-r [[:alpha:]]*",
    ];
    assert_eq!(texts, expected);
    assert_eq!(self::filter(&texts.iter().map(String::as_str).collect::<Vec<_>>(), &[]), filter);
}
