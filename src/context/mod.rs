//! What of a long conversation is shown: segments, tiers, importance, key facts, and how they share a budget.
//!
//! Everything here is pure: it takes values and `now`, returns values and breaks ties by id.
