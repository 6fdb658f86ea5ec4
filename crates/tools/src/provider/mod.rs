//! Operations on models: providers that may be asked, and the embedding model.

pub mod configure_llm_provider;
pub mod model;
pub mod providers;
pub mod sent;
pub mod spending;
