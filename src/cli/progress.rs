//! Shows the progress of long work, on stderr if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

use tiro_embed::install::Progress;

/// Returns a bar that counts `what`, such as `1,204 of 3,314 commits`. The bar draws nothing if stderr is not a
/// terminal.
pub fn bar(what: &'static str) -> ProgressBar {
    styled("{human_pos} of {human_len} {msg} {wide_bar} {eta}", what)
}

/// Returns a bar that counts bytes of `what`, such as `1.2 MiB of 40 MiB of transcripts`.
pub fn bytes(what: &'static str) -> ProgressBar {
    styled("{binary_bytes} of {binary_total_bytes} of {msg} {wide_bar} {eta}", what)
}

/// Returns a bar that shows the name of the current step, and counts bytes.
pub fn steps(what: &'static str) -> ProgressBar {
    styled("{msg} {wide_bar} {binary_bytes} of {binary_total_bytes} {eta}", what)
}

fn styled(template: &str, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("the template is sound");
    ProgressBar::new(0).with_style(style).with_message(what)
}

/// Sets the bar to `done` of `all`.
pub fn show(bar: &ProgressBar, done: u64, all: u64) {
    bar.set_length(all);
    bar.set_position(done);
}

/// Returns a function that shows the progress of an installation on `bar`.
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

/// Returns a spinner for work of unknown length.
pub fn waiting(what: &'static str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(what);
    spinner.enable_steady_tick(std::time::Duration::from_millis(200));
    spinner
}
