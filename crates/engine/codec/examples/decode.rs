//! decode FILE - decode a file, discard its bytes, and print the cost in the form that `bench/formats` reads.

use std::error::Error;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use millstream_codec::{Codec, Decoder};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: decode FILE")?;
    let codec = Codec::of_name(path.as_bytes()).ok_or("no compressed file")?;
    let start = Instant::now();
    let mut decoder = Decoder::new(codec, File::open(Path::new(&path))?);
    let mut buffer = vec![0; 256 << 10];
    while decoder.read(&mut buffer)? > 0 {}
    let wall_s = start.elapsed().as_secs_f64();
    // The first number: nanoseconds on a CPU (Documentation/scheduler/sched-stats.rst of the kernel).
    let on_cpu_ns: u64 =
        fs::read_to_string("/proc/self/schedstat")?.split(' ').next().ok_or("no number")?.parse()?;
    println!(
        "{{\"wall_s\": {wall_s:.4}, \"cpu_s\": {:.4}, \"heap_mb\": 0, \"rows\": null}}",
        on_cpu_ns as f64 / 1e9
    );
    Ok(())
}
