//! Version order (`-v`), as the manual of GNU coreutils documents it under "Version sort ordering rules".

use std::cmp::Ordering;

/// Compares two names in version order. Different names may be equal (`a1` and `a01`).
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    // The empty name, `.`, `..`, then other hidden names, then the rest.
    let (rank_a, rank_b) = (rank(a), rank(b));
    if rank_a != rank_b || rank_a < 3 {
        return rank_a.cmp(&rank_b);
    }
    let (bare_a, bare_b) = (without_suffix(a), without_suffix(b));
    match compare_parts(bare_a, bare_b) {
        // Only the suffixes differ: the whole names decide.
        Ordering::Equal if bare_a.len() < a.len() || bare_b.len() < b.len() => compare_parts(a, b),
        order => order,
    }
}

fn rank(name: &[u8]) -> u8 {
    match name {
        b"" => 0,
        b"." => 1,
        b".." => 2,
        [b'.', ..] => 3,
        _ => 4,
    }
}

/// `name` without a suffix like `.tar.gz`: any number of parts of a dot, a letter or `~`, and letters, digits or `~`,
/// as long as something is left.
fn without_suffix(name: &[u8]) -> &[u8] {
    let is_head = |b: u8| b.is_ascii_alphabetic() || b == b'~';
    let mut end = name.len();
    let mut at = name.len();
    while at > 0 {
        at -= 1;
        match name[at] {
            b'.' if at > 0 && name.get(at + 1).copied().is_some_and(is_head) => end = at,
            b if b.is_ascii_alphanumeric() || b == b'~' => {}
            _ => break,
        }
    }
    &name[..end]
}

/// Compares a part without digits, then a number, and so on.
fn compare_parts(mut a: &[u8], mut b: &[u8]) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let (text_a, rest_a) = split_at_digit(a);
        let (text_b, rest_b) = split_at_digit(b);
        let order = compare_text(text_a, text_b);
        if order.is_ne() {
            return order;
        }
        let (number_a, after_a) = split_number(rest_a);
        let (number_b, after_b) = split_number(rest_b);
        let order = number_a.len().cmp(&number_b.len()).then_with(|| number_a.cmp(number_b));
        if order.is_ne() {
            return order;
        }
        (a, b) = (after_a, after_b);
    }
    Ordering::Equal
}

fn split_at_digit(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(u8::is_ascii_digit).unwrap_or(text.len()))
}

/// The number at the start of `text`, without leading zeros, and the rest.
fn split_number(text: &[u8]) -> (&[u8], &[u8]) {
    let (digits, after) = text.split_at(text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len()));
    let zeros = digits.iter().position(|&b| b != b'0').unwrap_or(digits.len());
    (&digits[zeros..], after)
}

/// `~` first, then the end, then letters, then all else by value.
fn compare_text(a: &[u8], b: &[u8]) -> Ordering {
    let weight = |text: &[u8], i: usize| match text.get(i) {
        Some(b'~') => (0, 0),
        None => (1, 0),
        Some(&letter) if letter.is_ascii_alphabetic() => (2, letter),
        Some(&other) => (3, other),
    };
    let differ = (0..a.len().max(b.len())).map(|i| weight(a, i).cmp(&weight(b, i)));
    differ.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_order() {
        let sorted: &[&[u8]] = &[
            b"",
            b".",
            b"..",
            // A suffix is never the whole of a hidden name.
            b".0",
            b".9",
            b".A",
            b".a",
            b".bar|",
            b".tar.gz.txt",
            b"0",
            b"9",
            b"A",
            b"Z",
            b"a~",
            b"a",
            b"a.b~",
            b"a.b",
            b"a.bc~",
            b"a.bc",
            b"a+",
            b"a+a",
            b"b",
            b"foo-1.2.tar.gz",
            b"foo-1.10.tar.gz",
            b"gcc-c++-10.fc9.tar.gz",
            b"z",
            b"zz~",
            b"zz",
            b"zz.0",
            b"zz.0.txt",
        ];
        for pair in sorted.windows(2) {
            let (a, b) = (String::from_utf8_lossy(pair[0]), String::from_utf8_lossy(pair[1]));
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{a} {b}");
            assert_eq!(compare(pair[1], pair[0]), Ordering::Greater, "{b} {a}");
        }
    }

    #[test]
    fn leading_zeros_do_not_count() {
        assert_eq!(compare(b"a01", b"a1"), Ordering::Equal);
        assert_eq!(compare(b"a010", b"a9"), Ordering::Greater);
    }
}
