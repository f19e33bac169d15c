//! The argument of `--bwlimit`.

/// Bytes per second of a rate limit, or [`None`] for 0, which means no limit. Source: the manual rsync(1), *--bwlimit*
/// and *--max-size*: units of 1024 bytes by default; `K`, `M`, `G`, `T` and `P`, alone or with `iB`, are powers of
/// 1024, with `B` of 1000; `B` alone is bytes.
///
/// # Errors
/// If it is not a rate.
pub(super) fn parse_rate(text: &[u8]) -> Result<Option<u64>, ()> {
    let text = std::str::from_utf8(text).map_err(|_| ())?.to_ascii_lowercase();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let number: f64 = number.parse().map_err(|_| ())?;
    let unit = match suffix {
        "" => 1024.0,
        "b" => 1.0,
        _ => {
            let mut letters = suffix.chars();
            let power = letters.next().and_then(|unit| "kmgtp".find(unit)).ok_or(())? as i32 + 1;
            match letters.as_str() {
                "" | "ib" => 1024f64.powi(power),
                "b" => 1000f64.powi(power),
                _ => return Err(()),
            }
        }
    };
    let rate = number * unit;
    Ok((rate > 0.0).then(|| (rate as u64).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_rsync() {
        for (text, rate) in [
            ("100", Ok(Some(102_400))),
            ("1.5m", Ok(Some(1_572_864))),
            ("100KB", Ok(Some(100_000))),
            ("2MiB", Ok(Some(2 << 20))),
            ("512b", Ok(Some(512))),
            ("0", Ok(None)),
            ("", Err(())),
            ("fast", Err(())),
            ("1x", Err(())),
            ("-1", Err(())),
            ("1é", Err(())),
        ] {
            assert_eq!(parse_rate(text.as_bytes()), rate, "{text}");
        }
    }
}
