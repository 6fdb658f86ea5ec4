//! Decides which model or provider embeds texts. The decision depends on the options `embedding.prose` and
//! `embedding.code`, and on the uses of the providers.

use super::file::Sources;
use super::options::Options;
use super::providers::{Configured, Use};
use tiro_base::error::{Error, Result};
use tiro_base::memory::Content;

/// With this value, an option leaves the choice to Tiro.
const AUTO: &str = "auto";

/// The model or provider that embeds texts.
#[derive(Clone, Debug, PartialEq)]
pub enum Encoding {
    /// The model with this name on this machine; `None` for the installed model.
    Local(Option<String>),
    /// A provider.
    Provider(Box<Configured>),
}

impl Sources {
    /// Returns the model or provider that embeds texts of `content`, according to the options `embedding.prose` and
    /// `embedding.code`.
    ///
    /// # Errors
    ///
    /// [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if the option names a provider that may not embed, or if the
    /// configuration can't be read.
    pub fn encoding(&self, options: &Options, content: Content) -> Result<Encoding> {
        let (key, name) = match content {
            Content::Code if options.embedding_code != AUTO => ("embedding.code", &options.embedding_code),
            _ => ("embedding.prose", &options.embedding_prose),
        };
        let providers = self.providers(options)?;
        if name == AUTO {
            let first = providers.into_iter().find(|each| each.may(Use::Embed, options));
            return Ok(first.map_or(Encoding::Local(None), |first| Encoding::Provider(Box::new(first))));
        }
        match providers.into_iter().find(|each| each.provider.name == *name) {
            None if name == "local" => Ok(Encoding::Local(None)),
            None => Ok(Encoding::Local(Some(name.clone()))),
            Some(found) if found.may(Use::Embed, options) => Ok(Encoding::Provider(Box::new(found))),
            Some(found) if found.is_allowed(options) => {
                let message = format!("`{key}` names the provider `{name}`, which may not embed");
                Err(Error::bad_input(message).hint(format!("run `tiro provider add {name} --use embed`")))
            }
            Some(_) => Err(Error::bad_input(format!(
                "`{key}` names the provider `{name}` outside this machine, and `external` is `never`"
            ))
            .hint(format!("set `{key}` to `local`"))),
        }
    }
}
