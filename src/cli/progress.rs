//! Progress of long work, on stderr where a person watches.

use indicatif::{ProgressBar, ProgressStyle};

/// Returns a bar that counts `what`; nothing is drawn where stderr is no terminal.
pub fn bar(what: &'static str) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}").expect("the template is sound");
    ProgressBar::new(0).with_style(style).with_message(what)
}

/// Shows that `done` of `all` are done.
pub fn show(bar: &ProgressBar, done: usize, all: usize) {
    bar.set_length(all as u64);
    bar.set_position(done as u64);
}
