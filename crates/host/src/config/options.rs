//! All options with their defaults, in one list.
//!
//! From this list, a macro generates the struct, the defaults, the allowed values, and the table in
//! docs/configuration.md. A test compares that page with the table. An option is read from the first of these sources
//! that sets it: the command line (`--set KEY=VALUE`), its `TIRO_*` variable, the `PERSISTENCE_*` variable of the same
//! name, the configuration file. The variable is named after the key: in capitals, with `_` for the dot. An option
//! takes effect in the code that reads its field.

use std::fmt::Display;
use std::str::FromStr;

use tiro_base::memory::Millis;
use tiro_base::money::Money;
use tiro_base::times;
use tiro_digest::tuning::{contexts, summaries};
use tiro_recall::tuning::stash;

/// The character that ends each word of an array, so that a word may contain commas. It also distinguishes an array of
/// one word from a text in which commas separate the words.
pub(super) const END: char = '\u{1f}';

/// Whether providers outside this machine may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum External {
    /// They are allowed, each for the purposes in its `uses`.
    Allowed,
    /// They are never allowed, whatever else is configured.
    Never,
}

/// A list of words or patterns: an array, or a text in which commas separate them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List(pub Vec<String>);

/// One option: its names, its description, and how its value is read and shown.
pub struct Setting {
    /// The key in the configuration file and for `--set`, such as `context.max_tokens`.
    pub key: &'static str,
    /// The description.
    pub about: &'static str,
    /// A description of the values that are allowed.
    pub right: &'static str,
    /// Further variables that set the option.
    pub also: &'static [&'static str],
    read: fn(&mut Options, &str) -> bool,
    show: fn(&Options) -> String,
}

impl Setting {
    /// Returns the name of the option's variable without the prefix, such as `CONTEXT_MAX_TOKENS`.
    fn suffix(&self) -> String {
        self.key.to_uppercase().replace('.', "_")
    }

    /// Returns the variables that set the option. The first variable that is set counts.
    pub fn variables(&self) -> Vec<String> {
        let own = ["TIRO_", "PERSISTENCE_"].map(|prefix| format!("{prefix}{}", self.suffix()));
        own.into_iter().chain(self.also.iter().map(|name| (*name).to_owned())).collect()
    }

    /// Parses `text` into `options`. Returns false if the value is not allowed.
    pub(super) fn read(&self, options: &mut Options, text: &str) -> bool {
        (self.read)(options, text.trim())
    }

    /// Returns the value in `options` as text that `--set` accepts.
    pub fn show(&self, options: &Options) -> String {
        (self.show)(options)
    }
}

macro_rules! options {
    ($($(#[doc = $about:literal])+ $field:ident: $kind:ty = $default:expr, $key:literal, $right:literal,
       $is_right:expr $(, also $also:literal)?;)*) => {
        /// The value of every option.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Options {
            $($(#[doc = $about])+ pub $field: $kind,)*
        }

        impl Default for Options {
            fn default() -> Options {
                Options { $($field: $default,)* }
            }
        }

        impl Options {
            /// All options.
            pub const ALL: &'static [Setting] = &[$(Setting {
                key: $key,
                about: concat!($($about),+),
                right: $right,
                also: &[$($also)?],
                read: |options, text| {
                    let is_right: fn(&$kind) -> bool = $is_right;
                    let read = <$kind as Value>::read(text).filter(is_right);
                    read.map(|value| options.$field = value).is_some()
                },
                show: |options| options.$field.show(),
            }),*];
        }
    };
}

options! {
    /// The provider that is asked for summaries first, if its `uses` allow it.
    default_provider: String = "ollama".into(), "default_provider", "a provider's name", is_name,
        also "PERSISTENCE_SUMMARIZATION_PROVIDER";
    /// The provider that is asked if the default fails, if its `uses` allow it.
    fallback_provider: String = "openai".into(), "fallback_provider", "a provider's name", is_name;
    /// The time zone in which days begin and times are shown.
    zone: String = times::SYSTEM.into(), "zone", "system, or a name such as Europe/Berlin", |name| times::is_zone(name);
    /// Whether providers outside this machine may be asked at all.
    external: External = External::Allowed, "external", "allowed or never", any;
    /// The most times that a failed request is repeated.
    max_retries: u32 = 3, "max_retries", "a whole number, 0 to 10", |n| *n <= 10;
    /// The temperature of models, except for summaries; `tiro provider test` uses it.
    temperature: f64 = 0.7, "temperature", "a number, 0 to 2", |n| (0.0..=2.0).contains(n);
    /// The temperature of models for summaries.
    summary_temperature: f64 = 0.3, "summary.temperature", "a number, 0 to 2", |n| (0.0..=2.0).contains(n);
    /// The fewest messages that a conversation must have to be summarised in a context across conversations; a shorter one is shown in full.
    summarization_threshold: usize = summaries::THRESHOLD, "summary.threshold", "a whole number, 1 to 100000",
        |n| (1..=100_000).contains(n);
    /// How many seconds old the summary of a conversation with new messages may become.
    summary_update_interval_s: u64 = 3600, "summary.update_interval", "seconds, a whole number", any;
    /// How many seconds a call waits for a summary by a model on this machine.
    summary_local_deadline_s: u64 = 5, "summary.local_deadline", "seconds, 1 to 600", |n| (1..=600).contains(n);
    /// How many seconds a call waits for a summary by an external model.
    summary_external_deadline_s: u64 = 10, "summary.external_deadline", "seconds, 1 to 600",
        |n| (1..=600).contains(n);
    /// The token budget of a context across conversations.
    context_max_tokens: usize = 4000, "context.max_tokens", "a whole number, 300 to 20000",
        |n| (300..=20_000).contains(n);
    /// The token budget of the context of one conversation.
    session_max_tokens: usize = 8000, "context.session_max_tokens", "a whole number, 300 to 20000",
        |n| (300..=20_000).contains(n);
    /// The share of a context that summaries may take; messages get the rest.
    summary_ratio: f64 = contexts::SUMMARIES_SHARE, "context.summary_ratio", "a number, 0 to 1", share;
    /// How many of the latest messages a context shows in full if they fit.
    max_recent_messages: usize = 10, "context.max_recent_messages", "a whole number, 1 to 1000",
        |n| (1..=1000).contains(n);
    /// The percentage by which messages 11 to 50, counted from the latest, are shortened.
    compression_medium: f64 = 70.0, "context.compression_medium", "a number, 0 to 100", percent;
    /// The percentage by which messages 51 to 100, counted from the latest, are shortened.
    compression_long: f64 = 85.0, "context.compression_long", "a number, 0 to 100", percent;
    /// The percentage by which messages before the latest hundred are shortened.
    compression_ancient: f64 = 95.0, "context.compression_ancient", "a number, 0 to 100", percent;
    /// A message enters a context at any age if its importance is at least this.
    importance_threshold: f64 = contexts::IMPORTANCE_THRESHOLD, "context.importance_threshold", "a number, 0 to 1", share;
    /// The largest number of earlier messages that search may add to a context.
    vector_search_limit: usize = contexts::SEARCHED_MESSAGES, "context.vector_search_limit", "a whole number, 0 to 200", |n| *n <= 200;
    /// The weight of recency in the importance of a message.
    weight_recency: f64 = contexts::WEIGHT_RECENCY, "context.weight_recency", "a number, 0 to 1", share;
    /// The weight of similarity to the question in the importance of a message.
    weight_semantic: f64 = contexts::WEIGHT_SEMANTIC, "context.weight_semantic", "a number, 0 to 1", share;
    /// The weight of names in the importance of a message.
    weight_entity: f64 = contexts::WEIGHT_ENTITY, "context.weight_entity", "a number, 0 to 1", share;
    /// The weight of a user's mark in the importance of a message.
    weight_user: f64 = contexts::WEIGHT_USER, "context.weight_user", "a number, 0 to 1", share;
    /// How many seconds a context or a summary may come from the cache if its sources have not changed.
    cache_ttl_s: u64 = 86_400, "context.cache_ttl", "seconds, a whole number", any;
    /// The most bytes that the cache may take in each project's store.
    cache_max_bytes: u64 = 16 << 20, "context.cache_bytes", "bytes, a whole number", any;
    /// What embeds prose: `english` or `multilingual` (models on this machine), `local` (the one that is installed), or the name of a provider with the use `embed`; `auto` stands for such a provider if there is one, otherwise for `local`.
    embedding_prose: String = "auto".into(), "embedding.prose", "auto, local, english, multilingual or a provider's name", is_name;
    /// What embeds code, files and logs, with the same values; `auto` stands for what embeds prose.
    embedding_code: String = "auto".into(), "embedding.code", "auto, local, english, multilingual or a provider's name", is_name;
    /// Whether agents search all of the user's projects; if not, only the project they work in.
    search_everywhere: bool = false, "search.everywhere", "true or false", any;
    /// The weight of words and meaning in the score of a stashed segment.
    stash_weight_relevance: f64 = stash::WEIGHT_RELEVANCE, "stash.weight_relevance", "a number, 0 to 1", share;
    /// The weight of the age of its text in the score of a stashed segment; it falls by 63% in 30 days.
    stash_weight_age: f64 = stash::WEIGHT_AGE, "stash.weight_age", "a number, 0 to 1", share;
    /// The weight of the time since stashing in the score of a stashed segment; it falls by 63% in 7 days.
    stash_weight_stash_age: f64 = stash::WEIGHT_STASH_AGE, "stash.weight_stash_age", "a number, 0 to 1", share;
    /// After how many days a text that was given to the stash is removed, and other segments leave the stash, unless they are protected; 0 stands for never.
    stash_max_age_days: u64 = 0, "stash.max_age_days", "days, a whole number", any;
    /// The most US dollars that one call may cost.
    limit_call: Option<Money> = Some(Money(500_000)), "limits.call", "US dollars, or none", any;
    /// The most US dollars that may be spent per day (UTC), in all projects together.
    limit_day: Option<Money> = Some(Money(5_000_000)), "limits.day", "US dollars, or none", any;
    /// The most US dollars that each project may cost in total.
    limit_project: Option<Money> = None, "limits.project", "US dollars, or none", any;
    /// The most US dollars that all projects together may cost in total.
    limit_total: Option<Money> = None, "limits.total", "US dollars, or none", any;
    /// Whether a thread keeps each file in its place and sends only changes; if not, every call sends all files whole.
    consult_stable_inline: bool = true, "consult.stable_inline", "true or false", any, also "TIRO_STABLE_INLINE";
    /// The most tokens that the files of a thread may take in a prompt when they get their places; 0 stands for what the model's window allows.
    consult_inline_tokens: usize = 0, "consult.inline_tokens", "tokens, a whole number", any;
    /// How many seconds a call waits for a consulted model before it answers that the model is still working.
    consult_wait_s: u64 = 50, "consult.wait", "seconds, 1 to 3600", |n| (1..=3600).contains(n);
    /// How many seconds a consulted model may take to answer, with all its searches.
    consult_deadline_s: u64 = 900, "consult.deadline", "seconds, 1 to 86400", |n| (1..=86_400).contains(n);
    /// How many seconds a consulted model may send nothing before the request is given up.
    consult_silence_s: u64 = 60, "consult.silence", "seconds, 1 to 86400", |n| (1..=86_400).contains(n);
    /// Folders outside the project whose files may be sent to a consulted model, if a call names them.
    files_roots: List = List::default(), "files.roots", "directories", any;
    /// Files that are sent although their names say that they hold secrets: paths in the project, or absolute ones.
    files_secrets: List = List::default(), "files.secrets", "paths", any;
    /// The most bytes of a file that is sent or searched; a larger one is skipped, and the answer says so.
    files_max_bytes: u64 = 1 << 20, "files.max_bytes", "bytes, a whole number", |n| *n > 0;
    /// How many seconds a call may extract the text of documents (PDF, Word and others); those that it does not reach are named, and a repeated call goes on there.
    files_documents_time_s: u64 = 45, "files.documents_time", "seconds, 0 to 3600", |n| *n <= 3600;
    /// Of how many documents a call may extract the text; those whose text is known from an earlier call do not count.
    files_documents: usize = 2000, "files.documents", "a whole number", any;
    /// Patterns of names: sessions with such a name are never stored.
    ignore_sessions: List = List::default(), "ignore.sessions", "patterns", any;
    /// Patterns of paths in the project: changes to such files are never stored.
    ignore_paths: List = List::default(), "ignore.paths", "patterns", any;
    /// Whether sessions that a script ran (`claude -p`, `codex exec`) are never stored.
    ignore_headless: bool = false, "ignore.headless", "true or false", any;
    /// Directories whose repositories are accepted even if they have links in place of git's files, a git directory that does not point back, another owner, or objects in other repositories.
    git_trusted: List = List::default(), "git.trusted", "directories; `/*` at the end means all below", any;
}

fn millis(seconds: u64) -> Millis {
    Millis::try_from(seconds.saturating_mul(1000)).unwrap_or(Millis::MAX)
}

impl Options {
    /// Returns the option called `key`, or `None`.
    pub fn find(key: &str) -> Option<&'static Setting> {
        Options::ALL.iter().find(|setting| setting.key == key)
    }

    /// Returns the temperature of models that the user chose, if any, and the default temperature.
    pub fn temperatures(&self) -> (Option<f64>, Option<f64>) {
        chosen_and_usual(self.temperature, Options::default().temperature)
    }

    /// Returns the temperature of models for summaries that the user chose, if any, and the default temperature.
    pub fn summary_temperatures(&self) -> (Option<f64>, Option<f64>) {
        chosen_and_usual(self.summary_temperature, Options::default().summary_temperature)
    }

    /// Returns how long a cached answer may be reused, in milliseconds.
    pub fn cache_ttl(&self) -> Millis {
        millis(self.cache_ttl_s)
    }

    /// Returns the time before which a memory must have been made to leave the stash because of its age. `now` is the
    /// current time.
    pub fn stash_made_before(&self, now: Millis) -> Millis {
        const DAY: i64 = 86_400_000;
        match self.stash_max_age_days {
            0 => Millis::MIN,
            days => now.saturating_sub(i64::try_from(days).unwrap_or(i64::MAX).saturating_mul(DAY)),
        }
    }

    /// Returns how many bytes all cached answers may take.
    pub fn cache_bytes(&self) -> i64 {
        i64::try_from(self.cache_max_bytes).unwrap_or(i64::MAX)
    }

    /// Returns how old the summary of a conversation with new messages may become, in milliseconds.
    pub fn summary_update_interval(&self) -> Millis {
        millis(self.summary_update_interval_s)
    }

    /// Returns the table of the options as docs/configuration.md shows it.
    pub fn table() -> String {
        let defaults = Options::default();
        let mut table = "| option | default | values | what it sets |\n|---|---|---|---|\n".to_owned();
        for setting in Options::ALL {
            let default = match setting.show(&defaults) {
                empty if empty.is_empty() => String::new(),
                default => format!("`{default}`"),
            };
            let about = setting.about.trim().trim_end_matches('.');
            table += &format!("| `{}` | {default} | {} | {about} |\n", setting.key, setting.right);
        }
        table
    }
}

fn any<T>(_: &T) -> bool {
    true
}

fn share(n: &f64) -> bool {
    (0.0..=1.0).contains(n)
}

fn percent(n: &f64) -> bool {
    (0.0..=100.0).contains(n)
}

/// Returns whether `name` can be the name of a provider. Such a name is a key in the file and a word on the command
/// line.
#[expect(clippy::ptr_arg, reason = "the macro passes a reference to the field")]
pub(super) fn is_name(name: &String) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    (1..=40).contains(&name.len()) && name.bytes().all(is_plain)
}

/// A type of an option's value.
trait Value: Sized {
    fn read(text: &str) -> Option<Self>;
    fn show(&self) -> String;
}

/// Types that Rust itself can parse and print.
trait Plain: FromStr + Display {}
impl Plain for String {}
impl Plain for bool {}
impl Plain for u32 {}
impl Plain for u64 {}
impl Plain for usize {}
impl Plain for f64 {}

impl<T: Plain> Value for T {
    fn read(text: &str) -> Option<T> {
        text.parse().ok()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for External {
    fn read(text: &str) -> Option<External> {
        match text {
            "allowed" => Some(External::Allowed),
            "never" => Some(External::Never),
            _ => None,
        }
    }

    fn show(&self) -> String {
        match self {
            External::Allowed => "allowed".into(),
            External::Never => "never".into(),
        }
    }
}

impl Value for Option<Money> {
    fn read(text: &str) -> Option<Option<Money>> {
        match text {
            "none" => Some(None),
            amount => Money::parse(amount).map(Some),
        }
    }

    fn show(&self) -> String {
        self.map_or_else(|| "none".into(), |money| money.plain())
    }
}

impl Value for List {
    /// In the text of an array, each word ends with [`END`], so that a word may contain commas.
    fn read(text: &str) -> Option<List> {
        let between = [END, '\n'].into_iter().find(|end| text.contains(*end)).unwrap_or(',');
        let words = text.split(between);
        Some(List(words.map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()))
    }

    fn show(&self) -> String {
        self.0.join(", ")
    }
}

fn chosen_and_usual(temperature: f64, usual: f64) -> (Option<f64>, Option<f64>) {
    (Some(temperature).filter(|chosen| *chosen != usual), Some(usual))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_options_lists_every_option() {
        let page = include_str!("../../../../docs/configuration.md");
        let (_, rest) = page.split_once("<!-- options: begin -->\n").expect("the place of the table");
        let (table, _) = rest.split_once("<!-- options: end -->").unwrap();
        assert_eq!(table, Options::table(), "put this into docs/configuration.md:\n{}", Options::table());
    }

    #[test]
    fn every_option_is_read_as_it_is_shown_and_differs_once_it_is_set() {
        for setting in Options::ALL {
            let mut options = Options::default();
            let shown = setting.show(&options);
            assert!(setting.read(&mut options, &shown), "{}", setting.key);
            assert_eq!(options, Options::default(), "{}", setting.key);
            // Each option accepts one of these values, and the value is not the option's default.
            let other = ["never", "0.77", "577", "7", "false", "true", "UTC", "other"].iter().find(|text| {
                let mut tried = Options::default();
                setting.read(&mut tried, text) && tried != Options::default()
            });
            assert!(other.is_some(), "{} takes no other value", setting.key);
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let wrong = [
            ("context.max_tokens", "0"),
            ("context.max_tokens", "1e9"),
            ("context.summary_ratio", "1.5"),
            ("context.summary_ratio", "NaN"),
            ("temperature", "-0.1"),
            ("external", "sometimes"),
            ("limits.day", "-1"),
            ("limits.day", "NaN"),
            ("limits.day", "lots"),
            ("max_retries", "11"),
            ("default_provider", "../evil"),
        ];
        for (key, text) in wrong {
            let mut options = Options::default();
            assert!(!Options::find(key).unwrap().read(&mut options, text), "{key} = {text}");
            assert_eq!(options, Options::default());
        }
    }
}
