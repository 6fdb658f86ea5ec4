//! Summaries of messages and commits: by choosing sentences, or by a model.
