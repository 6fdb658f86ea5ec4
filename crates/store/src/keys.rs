//! Keys, which are opaque names of memories, chunks, sessions and queue entries within one store.
//!
//! A store returns keys, and any process can pass them to later calls of the same store. After the row of a key was
//! purged, calls find nothing under the key. The order of keys is used only to break ties in the same way each time.
//! The key of a memory is defined beside the memory, as [`MemoryKey`](tiro_base::memory::MemoryKey), because it is a
//! field of a memory.
//!
//! Ordinals of messages (`#12` in a session), numbers of segments and versions of summaries are not keys: users see
//! these numbers, and callers may compute with them.

/// Defines a key: a number that only a storage engine reads.
macro_rules! key {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(i64);

        impl $name {
            /// Returns the key of the row that an engine stores under `number`.
            pub const fn from_store(number: i64) -> $name {
                $name(number)
            }

            /// Returns the number under which an engine stores the row.
            pub const fn in_store(self) -> i64 {
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
    /// Names a session within one store. The key stays the same when the session gets another name.
    SessionKey
}

key! {
    /// Names an entry of the queue of summaries within one store.
    QueueKey
}

key! {
    /// Names the subject of several statements within one store.
    SubjectKey
}

/// The state of the memories of a scope: if two versions of a scope are equal, nothing in the scope changed
/// between them.
///
/// Versions can only be compared for equality, because a later version is not always greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version(i64);

impl Version {
    /// Returns the version that an engine stores as `number`.
    pub const fn from_store(number: i64) -> Version {
        Version(number)
    }

    /// Returns the number that an engine stores for the version.
    pub const fn in_store(self) -> i64 {
        self.0
    }

    /// Returns the version as bytes, which can be a part of a hash.
    pub fn bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }
}
