//! Where the installed models are.
//!
//! A user installs models into a folder of their own. The program may also have come in a package with a model. A model
//! of one's own comes before the package's.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Model;
use crate::weights::{self, Weights};

/// The folder of the models of a package, as seen from the program's folder: `bin/tiro` and `share/tiro/models` are in
/// one folder, as the Filesystem Hierarchy Standard has it.
const PACKAGED: &str = "share/tiro/models";

/// The folders in which models are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Models {
    own: PathBuf,
    packaged: Option<PathBuf>,
}

/// An installed model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledModel {
    /// The model.
    pub model: Model,
    /// The folder to load the model from.
    pub folder: PathBuf,
    /// The size of the model on disk, in bytes.
    pub bytes: u64,
    /// Why the model can't be used; `None` if every byte has just been verified.
    pub problem: Option<String>,
}

impl Models {
    /// Returns the models in the folder `own`, and no others.
    pub fn only(own: PathBuf) -> Models {
        Models { own, packaged: None }
    }

    /// Returns the models in the folder `own`, and those that came with the program at `program`.
    pub fn beside(own: PathBuf, program: &Path) -> Models {
        let prefix = program.parent().and_then(Path::parent);
        Models { own, packaged: prefix.map(|prefix| prefix.join(PACKAGED)) }
    }

    /// Returns the folder in which models are installed. It need not exist.
    pub fn own(&self) -> &Path {
        &self.own
    }

    /// Returns the folder to load `model` from. The folder need not exist.
    pub fn folder(&self, model: Model) -> PathBuf {
        let own = model.folder(&self.own);
        let packaged = self.packaged.iter().map(|packaged| model.folder(packaged));
        [own.clone()].into_iter().chain(packaged).find(|folder| is_there(folder)).unwrap_or(own)
    }

    /// Returns the model that is used: the multilingual model if it is installed, otherwise the default model, even if that
    /// is not installed.
    pub fn chosen(&self) -> Model {
        Model::ALL.into_iter().rfind(|model| is_there(&self.folder(*model))).unwrap_or(Model::MiniLm)
    }

    /// Returns the installed models, beginning with the one that is used. Verifies every byte of these models, which takes
    /// about 20 ms for the default model.
    pub fn list(&self) -> Vec<InstalledModel> {
        let found = Model::ALL.into_iter().rev().filter_map(|model| {
            let folder = self.folder(model);
            let path = folder.join(weights::FILE);
            let bytes = fs::metadata(&path).ok()?.len();
            let problem = Weights::open(model, &path).err().map(|error| error.to_string());
            Some(InstalledModel { model, folder, bytes, problem })
        });
        found.collect()
    }
}

fn is_there(folder: &Path) -> bool {
    folder.join(weights::FILE).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_of_ones_own_comes_before_the_packaged_one() {
        let place = tempfile::tempdir().unwrap();
        let (own, program) = (place.path().join("own"), place.path().join("bin/tiro"));
        let models = Models::beside(own.clone(), &program);
        let packaged = place.path().join("share/tiro/models/all-MiniLM-L6-v2");
        assert_eq!(models.folder(Model::MiniLm), Model::MiniLm.folder(&own));
        let put = |folder: &Path| {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(weights::FILE), "no model").unwrap();
        };
        put(&packaged);
        assert_eq!(models.folder(Model::MiniLm), packaged);
        assert_eq!(Models::only(own.clone()).folder(Model::MiniLm), Model::MiniLm.folder(&own));
        assert_eq!(models.list()[0].folder, packaged);
        assert!(models.list()[0].problem.is_some());
        put(&Model::MiniLm.folder(&own));
        assert_eq!(models.folder(Model::MiniLm), Model::MiniLm.folder(&own));
        assert_eq!(models.chosen(), Model::MiniLm);
        put(&Model::E5.folder(&own));
        assert_eq!(models.chosen(), Model::E5);
    }
}
