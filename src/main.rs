//! The `tiro` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    tiro::main()
}
