//! How futures are compiled.

/// Makes an `async fn` return its future in a box.
///
/// Rust compiles the code of a future where it is awaited, so the code of an operation is compiled again in each crate
/// that calls the operation. A boxed future is compiled once, in the crate of its function. The operations that both the
/// server and the command line call are boxed, and the largest functions of the host.
pub use async_recursion::async_recursion as boxed;
