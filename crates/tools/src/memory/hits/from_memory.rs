//! Makes hits of the memories that a search found.

use crate::common::beginning_in_bytes;
use crate::memory::beside::behind;
use crate::memory::hits::hit::NOT_IN_CLONE;
use crate::memory::hits::{Behind, Frame, Hit, Ranking, ScoreParts, SupersededBy};
use tiro_base::envelope;
use tiro_base::memory::{Kind, Provenance, marked};
use tiro_base::scope::AuthorId;
use tiro_base::times;
use tiro_host::assembly::quote;
use tiro_intake::{Gone, Standing};
use tiro_recall::retrieve::rank::{Parts, Ranked};
use tiro_store::{ShownMemory, Superseded};
use tiro_text::chunk::excerpt::Shown;

/// The longest part of a superseded sentence that a hit quotes, in bytes. Arbitrary: a line.
const LONGEST_STATEMENT: usize = 100;

/// Returns what a hit with the text `text` says about the memory that replaced it.
pub fn superseded_by(superseded: &Superseded, text: &str) -> SupersededBy {
    let statement = superseded.statement.and_then(|(start, end)| text.get(start..end));
    let statement = statement.map(str::trim).filter(|statement| *statement != text.trim());
    SupersededBy {
        by: superseded.by.to_string(),
        date: times::minute(superseded.by_time),
        statement: statement.map(|statement| beginning_in_bytes(statement, LONGEST_STATEMENT).into_owned()),
    }
}

/// Returns the hit for `ranked`, as `reader` sees it. `rank` is its place on the page.
pub fn hit(
    (rank, ranked, parts): (usize, &Ranked, Parts),
    found: ShownMemory,
    scope: &'static str,
    standing: Standing,
    behind: Option<Behind>,
    reader: &AuthorId,
) -> Hit {
    let ShownMemory { mut memory, chunk, conversations, confidences, .. } = found;
    // A commit that was rebased or cherry-picked has several SHAs. If one of them is an ancestor of the checked-out
    // commit, the hit cites this SHA.
    if let (Kind::Commit, Some(sha)) = (memory.kind, standing.reached.map(|sha| sha.to_string())) {
        memory.source_id = Some(sha);
    }
    let piece = memory.text.get(chunk.start..chunk.end).unwrap_or_default();
    let about = Shown::of_memory(&memory);
    let open = |line: String| line.trim_end().strip_suffix(']').map(str::to_owned).unwrap_or(line);
    let nameless = Shown { role: None, speaker: None, session: None, branch: None, path: None, ..about };
    let (head, bare_head) = (open(about.line()), open(nameless.line()));
    let is_machine = matches!(memory.provenance, Provenance::ModelSaid | Provenance::ToolOutput);
    let provenance = is_machine.then(|| memory.provenance.as_str());
    let score_parts = ScoreParts {
        lexical: rounded(parts.lexical),
        semantic: rounded(parts.semantic),
        speaker: rounded(parts.speaker),
        importance: rounded(parts.importance),
        exchange: rounded(parts.exchange),
        prior: rounded(parts.prior),
    };
    let frame = Frame { head, bare_head, provenance, whole: memory.tokens, rank, parts: score_parts.clone() };
    let shown = |text: &str| envelope::escape(text).into_owned();
    let text = match memory.kind {
        Kind::Commit => quote::commit(&memory.text, chunk.start..chunk.end, usize::MAX),
        _ => piece.trim().to_owned(),
    };
    let text = marked(text, memory.is_damaged);
    let ranking = Ranking {
        commit: match memory.kind {
            Kind::Commit => memory.source_id.clone(),
            _ => memory.head_sha.clone(),
        },
        provenance: memory.provenance.to_string(),
        score: rounded(parts.sum()),
        score_parts,
    };
    // A colleague's commit isn't gone if it was never here.
    let author = memory.author.other_than(reader);
    let is_elsewhere = author.is_some() && standing.gone == Some(Gone::Removed);
    let freshness = if is_elsewhere { NOT_IN_CLONE } else { standing.freshness.as_str() };
    Hit {
        id: memory.id.to_string(),
        kind: memory.kind.to_string(),
        scope: (scope != "project").then_some(scope),
        text: shown(&text),
        is_part: chunk.end - chunk.start < memory.text.trim().len(),
        session_id: memory.session.as_ref().map(|session| shown(session.as_str())),
        title: None,
        project: None,
        speaker: behind::speaker(&memory),
        author,
        path: memory.path.as_deref().filter(|_| memory.kind == Kind::Document).map(shown),
        branch: memory.branch.as_deref().map(shown),
        source_id: memory.source_id.as_deref().map(shown),
        time: times::show_time(memory.time),
        freshness: freshness.to_owned(),
        stale_names: standing.names.iter().map(|name| shown(name)).collect(),
        gone: standing.gone.filter(|_| !is_elsewhere).map(|gone| gone.as_str().to_owned()),
        superseded: None,
        ranking: Some(ranking),
        relevance: parts.sum() - parts.exchange - parts.prior,
        tokens: 0,
        conversations: conversations.iter().map(|session| shown(session.as_str())).collect(),
        confidences: confidences.into_iter().map(|sure| (sure * 100.0).round() / 100.0).collect(),
        behind,
        duplicates: ranked.duplicates,
        frame,
    }
}

fn rounded(score: f64) -> f64 {
    (score * 1000.0).round() / 1000.0
}
