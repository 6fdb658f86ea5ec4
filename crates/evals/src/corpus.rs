//! Synthetic conversations of any length. The same seed gives the same messages.
//!
//! The frequencies of words follow Zipf's law; the vocabulary has plain words and identifiers built from them. Each
//! session has fifty messages and a topic. Most messages are short, but a few have several hundred words. So indexes
//! and the encoder do the same work as for real conversations. The corpus can't show how good answers are.

use anyhow::{Context, Result, bail};

use crate::random::Random;
use crate::suite::Message;

/// How many messages a session has.
pub const SESSION: usize = 50;

/// The version of the texts. It must change whenever the same seed gives other texts, so that `--keep` does not reuse
/// an outdated store.
pub const VERSION: u32 = 1;

const TOPICS: usize = 400;
const TOPIC_WORDS: usize = 14;

const COMMON: &str = "the to of and a in is it that for we on this with be not as so but if at have was \
    can you do are from or when I by there now then which one just what will after only how about into would \
    more also should still some no like use get make need see think want before over same because first new \
    all them its than out";

const WORDS: &str = "abort account adapter address agent alert allocator anchor answer archive argument \
    array arrow asset attempt audit backend backoff backup badge balance bank barrier batch beacon benchmark \
    binary binding blob block border branch bridge broker browser bucket budget buffer build bundle button \
    cache calendar callback canvas capacity capture carrier cascade catalog channel chapter charge chart \
    check chunk circuit client clock cluster codec collector column command comment commit compass compiler \
    composer config connection console constraint container context contract controller cookie copper \
    counter coupon crash credit cron currency cursor customer cycle daemon dashboard database deadline \
    decimal decoder default delta deploy depth design detail device dialog diff digest directory dispatch \
    document domain draft driver duplicate editor element email encoder endpoint engine entry epoch error \
    estimate event evidence exchange export extension fallback feature feedback fetch field filter fixture \
    flag flow flush folder footer foreign format fragment frame freeze function garden gateway generator \
    geometry glacier gradient graph group guard handle handler handshake harbor hash header heap heartbeat \
    history hook host icon identity image import incident index input insert inspector install instance \
    integer interval invoice island iterator journal kernel keyboard label lantern latency launch layer \
    layout leader ledger legend lemon letter level library license limit linker list locale lock logger loop \
    machine macro manifest mapper margin marker market mask matrix measure member memory merge message meter \
    method metric middleware migration mirror mobile module monitor mountain mutex namespace network node \
    notice number object observer offset operator option orchard order origin output owner package packet \
    page palette panel parcel parser partition password patch path payload payment peer pencil permission \
    pipeline pixel planet plugin pointer policy pool port prefix price printer priority process producer \
    profile project prompt protocol proxy publisher quality query queue quota radar range reader receipt \
    record recovery redirect reducer region registry release render replica report request reserve resolver \
    resource response restore result retry review river role rollback router routine rule runner runtime \
    sample scanner schedule schema scope screen script sector segment selector sender sensor sequence series \
    server service session shader shard sheet shell shelter shipment signal signature silver snapshot socket \
    solver source spool stack stage standard state station statistic storage stream string struct style \
    subnet subscriber suffix summary supplier surface switch symbol syntax table target task template tenant \
    terminal thread threshold ticket timeline timeout timer token toolbar topic trace tracker traffic \
    transaction transport travel tree trigger tunnel tuple upgrade upload validator value vector vendor \
    version viewer village volume voucher wallet warehouse warning watcher weather webhook widget window \
    winter worker workspace wrapper writer zone";

/// The generator of one corpus.
pub struct Corpus {
    seed: u64,
    common: Vec<&'static str>,
    words: Vec<&'static str>,
}

impl Corpus {
    /// Returns the corpus of `seed`.
    pub fn new(seed: u64) -> Corpus {
        Corpus {
            seed,
            common: COMMON.split_whitespace().collect(),
            words: WORDS.split_whitespace().collect(),
        }
    }

    /// Returns message `index`, which depends only on the seed and the index.
    pub fn message(&self, index: usize) -> Message {
        let mut random = self.random(1, index);
        let session = index / SESSION;
        let length = match random.unit() {
            u if u < 0.70 => 5 + random.below(16),
            u if u < 0.94 => 20 + random.below(31),
            u if u < 0.99 => 50 + random.below(101),
            _ => 150 + random.below(351),
        };
        let user = index.is_multiple_of(2);
        Message {
            project: String::new(),
            session: format!("session-{session:05}"),
            id: format!("message-{index:07}"),
            speaker: Some(if user { "Ada" } else { "Agent" }.into()),
            role: if user { "user" } else { "assistant" }.into(),
            time: Some(rfc3339(1_704_067_200 + 7200 * session as i64 + 40 * (index % SESSION) as i64)),
            text: self.prose(&mut random, self.topic(session), length),
        }
    }

    /// Returns question `index`, which is about one of the first `messages` messages. No two questions are the same.
    pub fn query(&self, index: usize, messages: usize) -> String {
        let mut random = self.random(2, index);
        let message = self.message(random.below(messages.max(1)));
        let long_words: Vec<&str> =
            message.text.split([' ', '.', ',']).filter(|word| word.len() > 4).collect();
        let wanted = 3 + random.below(5);
        let mut words: Vec<&str> = Vec::new();
        for _ in 0..3 * wanted {
            let word = *random.pick(if long_words.is_empty() { &self.words } else { &long_words });
            if words.len() < wanted && !words.contains(&word) {
                words.push(word);
            }
        }
        let opening =
            random.pick(&["what did we decide about", "when was", "why does the", "how is", "where did"]);
        format!("{opening} {} {}", words.join(" "), self.identifier(&mut random, index))
    }

    /// Returns a text of about `words` words on the topic of `session`.
    pub fn text(&self, index: usize, session: usize, words: usize) -> String {
        self.prose(&mut self.random(3, index), self.topic(session), words)
    }

    /// Returns a word of the vocabulary that is no function word.
    pub fn word(&self, random: &mut Random) -> &'static str {
        self.words[random.below(self.words.len())]
    }

    fn random(&self, use_: u64, index: usize) -> Random {
        let mut mixed = Random::new(self.seed ^ (use_ << 56) ^ index as u64);
        Random::new(mixed.bits())
    }

    fn topic(&self, session: usize) -> usize {
        self.random(4, session).zipf(TOPICS)
    }

    fn prose(&self, random: &mut Random, topic: usize, words: usize) -> String {
        let mut text = String::with_capacity(words * 7);
        let mut left_in_sentence = 0;
        for position in 0..words {
            let starts = left_in_sentence == 0;
            if starts {
                left_in_sentence = 6 + random.below(11);
            }
            let word = match random.unit() {
                u if u < 0.48 => self.common[random.zipf(self.common.len())].to_string(),
                u if u < 0.66 => self.words[random.zipf(self.words.len())].to_string(),
                u if u < 0.90 => self.topic_word(topic, random.zipf(TOPIC_WORDS)),
                u if u < 0.96 => {
                    let rank = random.zipf(20_000);
                    self.identifier(random, rank)
                }
                _ => format!("{}.{}", random.below(10), random.below(100)),
            };
            if starts {
                text.extend(word.chars().next().map(|first| first.to_ascii_uppercase()));
                text.push_str(&word[1..]);
            } else {
                text.push_str(&word);
            }
            left_in_sentence -= 1;
            let ends = left_in_sentence == 0 || position + 1 == words;
            text.push_str(if ends { ". " } else { " " });
        }
        text.truncate(text.trim_end().len());
        text
    }

    fn topic_word(&self, topic: usize, rank: usize) -> String {
        let mut random = self.random(5, topic * TOPIC_WORDS + rank);
        if rank % 4 == 3 {
            return self.identifier(&mut random.clone(), random.below(20_000));
        }
        random.pick(&self.words).to_string()
    }

    /// Returns the identifier of `rank`: two words joined in one of the styles of programming languages.
    fn identifier(&self, random: &mut Random, rank: usize) -> String {
        let mut fixed = self.random(6, rank);
        let (first, second) = (fixed.pick(&self.words), fixed.pick(&self.words));
        match fixed.below(4) {
            0 => format!("{first}_{second}"),
            1 => format!("{first}::{second}"),
            2 => format!("{first}-{second}"),
            _ => format!("{first}/{second}.rs:{}", 1 + random.below(900)),
        }
    }
}

/// Returns the time `seconds` after 1970 in RFC 3339 and UTC. The calendar is computed by Howard Hinnant's
/// `civil_from_days`.
pub fn rfc3339(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Returns the seconds since 1970 of a time in RFC 3339 and UTC.
pub fn seconds_of(time: &str) -> Result<i64> {
    let fields: Vec<i64> = time
        .split(|c: char| !c.is_ascii_digit())
        .filter(|field| !field.is_empty())
        .take(6)
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| format!("reading the time `{time}`"))?;
    let [year, month, day, hour, minute, second] = fields[..] else { bail!("`{time}` is no time") };
    // Days since 1970: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Ok(days * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_it_was_written() {
        for seconds in [0, 951_782_400, 1_735_689_599, 1_677_628_799] {
            assert_eq!(seconds_of(&rfc3339(seconds)).unwrap(), seconds);
        }
        assert_eq!(seconds_of("2023-05-08T13:56:00+00:00").unwrap(), 1_683_554_160);
        assert!(seconds_of("yesterday").is_err());
    }

    #[test]
    fn times_are_calendar_times() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_735_689_599), "2024-12-31T23:59:59Z");
    }

    #[test]
    fn messages_depend_on_seed_and_index_alone() {
        let corpus = Corpus::new(1);
        assert_eq!(corpus.message(77).text, Corpus::new(1).message(77).text);
        assert_ne!(corpus.message(77).text, Corpus::new(2).message(77).text);
        assert_ne!(corpus.message(77).text, corpus.message(78).text);
        assert_eq!(
            (corpus.message(77).session.as_str(), corpus.message(100).session.as_str()),
            ("session-00001", "session-00002")
        );
    }

    #[test]
    fn lengths_are_mixed_and_queries_distinct() {
        let corpus = Corpus::new(1);
        let mut words: Vec<usize> = (0..2000).map(|i| corpus.message(i).text.split(' ').count()).collect();
        words.sort();
        assert!(words[1000] <= 25 && words[1999] >= 150, "{} {}", words[1000], words[1999]);
        let queries: std::collections::HashSet<String> = (0..500).map(|i| corpus.query(i, 2000)).collect();
        assert!(queries.len() >= 499);
    }
}
