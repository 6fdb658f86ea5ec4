//! The models that can be installed.

use std::path::{Path, PathBuf};

use tiro_text::words::Language;

/// How many numbers a vector of any of the models has.
pub(crate) const WIDTH: usize = 384;

/// A model. All models have the same architecture, BERT with vectors of 384 numbers, but different sizes and
/// tokenizers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// all-MiniLM-L6-v2: English, the default.
    MiniLm,
    /// multilingual-e5-small: about a hundred languages, half as fast.
    E5,
}

impl Model {
    /// All models. If several of them are installed, the last one in this list is used.
    pub const ALL: [Model; 2] = [Model::MiniLm, Model::E5];

    /// Returns the model called `name`, which may also be the short name of the model.
    pub fn parse(name: &str) -> Option<Model> {
        let short = |model: Model| match model {
            Model::MiniLm => "english",
            Model::E5 => "multilingual",
        };
        Model::ALL.into_iter().find(|model| model.name() == name || short(*model) == name)
    }

    /// Returns the name of the model, which is also the name of its folder.
    pub fn name(self) -> &'static str {
        match self {
            Model::MiniLm => "all-MiniLM-L6-v2",
            Model::E5 => "multilingual-e5-small",
        }
    }

    /// Returns the model's folder within `models`. The folder need not exist.
    pub fn folder(self, models: &Path) -> PathBuf {
        models.join(self.name())
    }

    /// Returns the command that installs the model.
    pub fn installation(self) -> &'static str {
        match self {
            Model::MiniLm => "tiro model install",
            Model::E5 => "tiro model install multilingual",
        }
    }

    /// Returns the name of its vector space.
    pub fn space(self) -> &'static str {
        match self {
            Model::MiniLm => "all-MiniLM-L6-v2/mean/l2",
            Model::E5 => "multilingual-e5-small-q4/mean/l2",
        }
    }

    /// Returns how many numbers a vector has.
    pub fn dimensions(self) -> usize {
        WIDTH
    }

    /// Returns how many layers it has.
    pub(super) fn layers(self) -> usize {
        match self {
            Model::MiniLm => 6,
            Model::E5 => 12,
        }
    }

    /// Returns how many tokens the vocabulary has.
    pub(super) fn words(self) -> usize {
        match self {
            Model::MiniLm => 30_522,
            Model::E5 => 250_037,
        }
    }

    /// Returns two prefixes: one is put before each question, the other before each text that a question may find. The
    /// model was trained with these prefixes.
    pub(super) fn prefixes(self) -> (&'static str, &'static str) {
        match self {
            Model::MiniLm => ("", ""),
            Model::E5 => ("query: ", "passage: "),
        }
    }

    /// Returns whether the model was trained on texts in `language`. [`Language`] does not include English, which every
    /// model can read.
    pub fn reads(self, _language: Language) -> bool {
        self == Model::E5
    }

    /// Returns the cosine of two vectors on the scale of [`Model::MiniLm`].
    ///
    /// The cosines of multilingual-e5-small lie between 0.7 and 1, since it was trained with a low temperature
    /// (Wang et al., "Multilingual E5 Text Embeddings", 2024). For the questions of `evals words`, the median cosine is
    /// 0.89 with the right memory and 0.76 with the others.
    pub fn on_common_scale(self, cosine: f64) -> f64 {
        match self {
            Model::MiniLm => cosine,
            Model::E5 => (cosine - 0.76) / 0.22,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_named_as_on_the_hub_or_in_short() {
        assert_eq!(Model::parse("all-MiniLM-L6-v2"), Some(Model::MiniLm));
        assert_eq!(Model::parse("multilingual"), Some(Model::E5));
        assert_eq!(Model::parse("other"), None);
    }
}
