//! The texts of `--help`, as they were last looked at.

use std::process::Command;

#[test]
fn help_is_the_golden_file() {
    let tools = [
        (env!("CARGO_BIN_EXE_pls"), include_str!("golden/pls-help.txt")),
        (env!("CARGO_BIN_EXE_pfind"), include_str!("golden/pfind-help.txt")),
        (env!("CARGO_BIN_EXE_pdu"), include_str!("golden/pdu-help.txt")),
        (env!("CARGO_BIN_EXE_pcopy"), include_str!("golden/pcopy-help.txt")),
        (env!("CARGO_BIN_EXE_prm"), include_str!("golden/prm-help.txt")),
        (env!("CARGO_BIN_EXE_pchmod"), include_str!("golden/pchmod-help.txt")),
        (env!("CARGO_BIN_EXE_pchown"), include_str!("golden/pchown-help.txt")),
        (env!("CARGO_BIN_EXE_psync"), include_str!("golden/psync-help.txt")),
        (env!("CARGO_BIN_EXE_millstream"), include_str!("golden/millstream-help.txt")),
    ];
    let index = (env!("CARGO_BIN_EXE_millstream"), include_str!("golden/millstream-index-help.txt"));
    let all = tools.map(|(program, expected)| (program, &["--help"][..], expected));
    for (program, arguments, expected) in
        all.into_iter().chain([(index.0, &["index", "--help"][..], index.1)])
    {
        let output = Command::new(program).args(arguments).env("LC_ALL", "C").output().expect(program);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{program}");
        assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]), "{program}");
        let is_usage = |line: &str| line.starts_with("Usage: ") || line.starts_with("  or:  ");
        let wide: Vec<_> = expected.lines().filter(|l| !is_usage(l) && l.chars().count() >= 80).collect();
        assert!(wide.is_empty(), "{program}: {wide:?}");
    }
}
