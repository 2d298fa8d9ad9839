// SPDX-License-Identifier: Apache-2.0
// What a program in Rust sees.
use std::{env, process, thread, time::Duration};
fn main() {
    match env::args().nth(1).as_deref() {
        Some("exit") => process::exit(7),
        Some("child") => {
            let status = process::Command::new("sh").args(["-c", "exit 4"]).status();
            println!("{:?}", status.ok().and_then(|s| s.code()));
        }
        Some("panic") => panic!("on purpose"),
        Some("threads") => {
            let all: Vec<_> = (0..8).map(|i| thread::spawn(move || i * i)).collect();
            println!("{}", all.into_iter().map(|t| t.join().unwrap()).sum::<i32>());
        }
        _ => {
            println!("ready");
            thread::sleep(Duration::from_secs(4));
            process::exit(77);
        }
    }
}
