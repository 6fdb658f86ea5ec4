//! Which versions of the repository's documents a search may show.

use std::collections::HashSet;

use crate::project::OpenProject;
use tiro_base::error::Result;
use tiro_base::memory::{Kind, MemoryId};
use tiro_capture::follow::documents::{CURSOR, current};
use tiro_recall::retrieve::rank::Ranked;

impl OpenProject {
    /// Removes the documents that are not in the commit that is checked out from the ranked memories. They are earlier
    /// versions, or documents of other branches. The project's store is the first of the searched stores.
    pub async fn keep_current_documents(&self, ranked: &mut Vec<Ranked>) -> Result<()> {
        let is_document = |each: &Ranked| each.store == 0 && each.place.kind == Kind::Document;
        if !ranked.iter().any(is_document) {
            return Ok(());
        }
        let cursor = self.store.import_cursor(&self.scope, CURSOR).await?;
        let ids: Option<HashSet<MemoryId>> = cursor.as_deref().map(current);
        let is_current = |each: &Ranked| ids.as_ref().is_none_or(|ids| ids.contains(&each.place.id));
        ranked.retain(|each| !is_document(each) || is_current(each));
        Ok(())
    }
}
