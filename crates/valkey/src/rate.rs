//! How often a caller calls all servers together: a bucket of tokens, which refills by the clock of Valkey.

use std::time::Duration;

use fred::interfaces::LuaInterface;

use crate::Valkey;

/// Takes a token from the bucket `KEYS[1]`, which gets `ARGV[1]` tokens a second and holds `ARGV[2]`. Returns 0, or the
/// number of milliseconds until there is one.
const TAKE: &str = "local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local bucket = redis.call('HMGET', KEYS[1], 'left', 'at')
local left, at = tonumber(bucket[1]) or burst, tonumber(bucket[2]) or now
left = math.min(burst, left + math.max(0, now - at) * rate)
if left < 1 then return math.ceil((1 - left) / rate * 1000) end
redis.call('HSET', KEYS[1], 'left', left - 1, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(burst / rate * 1000) + 1000)
return 0";

/// How often a caller may call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// The calls for each second, in the long run.
    pub rate: f64,
    /// The calls that may come at once after a pause.
    pub burst: f64,
}

impl Valkey {
    /// Counts a call of `caller` to the servers of `group`. Returns how long the caller must wait before calling again, if
    /// it calls too often; then the call is not counted. If Valkey doesn't answer, the caller needn't wait.
    pub async fn take(&self, group: &str, caller: &str, rate: Rate) -> Option<Duration> {
        let client = self.client()?;
        // A caller's name is in no key.
        let key = format!("tiro:rate:{group}:{}", blake3::hash(caller.as_bytes()).to_hex());
        let wait: i64 = self.told(client.eval(TAKE, key, vec![rate.rate, rate.burst]).await)?;
        (wait > 0).then(|| Duration::from_millis(wait.unsigned_abs()))
    }
}
