//! Keys: opaque names of memories, chunks, sessions and queue entries within one store.
//!
//! A key comes from a store and is good for later calls to that same store, by any process, until the named thing is purged;
//! a key that names nothing any more finds nothing. Keys compare, so that ties have a fixed order, and nothing else can be
//! done with them. The key of a memory is [`MemoryKey`](crate::memory::MemoryKey), since a memory carries it.
//!
//! Ordinals of messages (`#12` in a session), numbers of segments and versions of a summary are no keys: they mean something
//! to users, and callers may count with them.

/// Defines a key: a number that only an engine can look into.
macro_rules! key {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(i64);

        impl $name {
            /// Makes the key of the row that an engine keeps under `number`.
            pub(crate) const fn from_store(number: i64) -> $name {
                $name(number)
            }

            /// Returns the number that an engine keeps the row under.
            pub(crate) const fn in_store(self) -> i64 {
                self.0
            }
        }
    };
}

key! {
    /// Names a chunk of a memory within one store.
    ChunkKey
}

key! {
    /// Names a session within one store; a session keeps its key when it gets another name.
    SessionKey
}

key! {
    /// Names an entry of the queue of summaries within one store.
    QueueKey
}

/// The state of some memories at one moment: two equal versions of one scope mean that nothing in it changed between.
///
/// Versions only compare for equality; a later one need not be greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version(i64);

impl Version {
    /// Makes the version that an engine writes as `number`.
    pub(crate) const fn from_store(number: i64) -> Version {
        Version(number)
    }

    /// Returns the number that an engine writes the version as.
    pub(crate) const fn in_store(self) -> i64 {
        self.0
    }

    /// Returns the version as bytes, to be part of a hash.
    pub fn bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }
}
