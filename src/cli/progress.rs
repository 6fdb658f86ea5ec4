//! Progress of long work, on stderr where a person watches.

use indicatif::{ProgressBar, ProgressStyle};

use crate::embed::install::Progress;

/// Returns a bar that counts `what`; nothing is drawn where stderr is no terminal.
pub fn bar(what: &'static str) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}").expect("the template is sound");
    ProgressBar::new(0).with_style(style).with_message(what)
}

/// Returns a bar that counts bytes of `what`.
pub fn bytes(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {eta}");
    ProgressBar::new(0).with_style(style.expect("the template is sound")).with_message(what)
}

/// Shows that `done` of `all` are done.
pub fn show(bar: &ProgressBar, done: u64, all: u64) {
    bar.set_length(all);
    bar.set_position(done);
}

/// Returns what shows the progress of an installation on `bar`.
pub fn installation(bar: &ProgressBar) -> impl Fn(Progress<'_>) + Send + 'static {
    let bar = bar.clone();
    move |progress| match progress {
        Progress::Step(step) => bar.set_message(step.to_owned()),
        Progress::Bytes { done, total } => {
            bar.set_length(total);
            bar.set_position(done);
        }
    }
}

/// Returns what shows that `what` goes on, where nobody knows how long.
pub fn waiting(what: &'static str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(what);
    spinner.enable_steady_tick(std::time::Duration::from_millis(200));
    spinner
}
