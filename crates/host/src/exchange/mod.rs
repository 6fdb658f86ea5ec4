//! The exchange of memories with the server of a team.
//!
//! A developer's machine has its own store, and works with it alone. If its project is connected with one of a server
//! ([`connect`]), each side tells the other what changed since the last time ([`run`]): first the machine sends
//! ([`send`]), then it receives ([`receive`]). Both go in pages, and the place that was reached is kept after each page.
//! So an exchange can be interrupted at any time, and continued or repeated.
//!
//! Neither side trusts the other. What arrives is redacted, cut and counted like every new text ([`arriving`]). A server
//! also decides who may change what ([`serve`]).
//!
//! The network is never waited for by a call: the idle worker exchanges, and `tiro sync`.

mod arriving;
pub mod connect;
pub mod connection;
pub mod receive;
pub mod run;
pub mod send;
pub mod serve;
