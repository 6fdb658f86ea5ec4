//! Lists the commits to import, each once, oldest first.
//!
//! Parents come before their children. So if an import stops early, all ancestors of every stored commit are stored
//! too, and the import can be resumed without a cursor: the next walk stops at known commits
//! ([`KnownCommit::CoversAncestors`]). Such a walk misses unknown commits *below* known ones. Such commits exist after
//! a shallow clone was deepened, or after commits were imported out of order. For these cases,
//! [`KnownCommit::OnlyItself`] walks the whole history and leaves out known commits.
//!
//! Only the ids of commits and the links to their parents are kept in memory: less than 100 bytes for each commit.

use std::collections::HashMap;

use super::Stop;
use crate::commit::{self, Unreadable};
use crate::repository::{Repository, Tip};
use crate::sha::Sha;
use tiro_base::error::{Error, Kind, Result};

/// The maximum number of links from commits to parents in the whole history. The maximum number of links takes about
/// 200 MB of memory. The history of the Linux kernel has 1.4 million links.
const EDGE_LIMIT: usize = 20_000_000;

/// Whether the ancestors of a known commit are known too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownCommit {
    /// All ancestors of a known commit are known too, so the walk stops there.
    CoversAncestors,
    /// Ancestors of a known commit may be unknown, so the walk continues below it and reads the whole history.
    OnlyItself,
}

/// The commits to import.
#[derive(Debug)]
pub struct History {
    /// The commits, parents before children. For the same repository, the order is always the same.
    pub commits: Vec<Listed>,
    /// Commits that a branch or a child names, but that cannot be read.
    pub unreadable: Vec<Unreadable>,
    branches: Vec<String>,
}

impl History {
    /// Returns the branch that a commit belongs to. A commit belongs to a branch if it can be reached from no other
    /// branch, and from this branch through first parents. Returns `None` if the commit can be reached from several
    /// branches, if it came in through a merge, or if the repository has only one branch.
    pub fn branch(&self, commit: &Listed) -> Option<&str> {
        commit.branch.map(|branch| self.branches[branch as usize].as_str())
    }
}

/// A commit found by a walk.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    /// The id of the commit.
    pub sha: Sha,
    branch: Option<u32>,
}

impl Repository {
    /// Returns the commits that are reachable from `tips` and for which `is_known` returns false, oldest first.
    ///
    /// `is_known` is called at most once for each commit. The result lists the commits that cannot be read in
    /// [`History::unreadable`].
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if the file `shallow` can't be read, if the history has more than 20 million links from commits to
    /// parents, or if `stop` is set.
    pub fn history(
        &self,
        tips: &[Tip],
        known: KnownCommit,
        stop: &Stop,
        is_known: &mut dyn FnMut(&Sha) -> bool,
    ) -> Result<History> {
        let mut objects = self.objects.handle();
        let shallow = self.shallow()?;
        let is_boundary = |sha: &Sha| shallow.contains(sha);

        let mut graph = Graph::default();
        let mut order = Vec::new();
        let mut unreadable = Vec::new();
        let mut buffer = Vec::new();
        // Called when the walk reaches a commit for the first time. Decides whether the commit is wanted, and adds its
        // parents to the graph.
        let mut meet = |graph: &mut Graph, node: usize| -> Result<()> {
            let sha = graph.nodes[node].sha;
            if stop.is_set() || graph.edges.len() > EDGE_LIMIT {
                return Err(too_large(graph.edges.len()));
            }
            let is_known = is_known(&sha);
            graph.nodes[node].state = State::LeftOut;
            if is_known && known == KnownCommit::CoversAncestors {
                return Ok(());
            }
            match commit::parents(&mut objects, &sha, &mut buffer) {
                Ok(parents) => {
                    let parents = if is_boundary(&sha) { Vec::new() } else { parents };
                    graph.set_parents(node, parents);
                    graph.nodes[node].state = if is_known { State::LeftOut } else { State::Wanted };
                }
                Err(reason) => unreadable.push(Unreadable { sha, reason }),
            }
            Ok(())
        };
        for tip in tips {
            let mut path = vec![Visit { node: graph.node(tip.sha), next: 0 }];
            while let Some(Visit { node, next }) = path.last_mut() {
                let node = *node as usize;
                if *next == 0 && graph.nodes[node].state != State::New {
                    path.pop();
                    continue;
                }
                if *next == 0 {
                    meet(&mut graph, node)?;
                }
                match graph.parents(node).get(*next as usize).copied() {
                    Some(parent) => {
                        *next += 1;
                        if graph.nodes[parent as usize].state == State::New {
                            path.push(Visit { node: parent, next: 0 });
                        }
                    }
                    None => {
                        path.pop();
                        if graph.nodes[node].state == State::Wanted {
                            order.push(node as u32);
                        }
                    }
                }
            }
        }

        let (labels, branches) = label(&mut graph, tips);
        let listed =
            |&node: &u32| Listed { sha: graph.nodes[node as usize].sha, branch: labels[node as usize] };
        Ok(History { commits: order.iter().map(listed).collect(), unreadable, branches })
    }
}

fn too_large(edges: usize) -> Error {
    match edges > EDGE_LIMIT {
        true => {
            Error::new(Kind::Git, format!("the history has more than {EDGE_LIMIT} links between commits"))
                .hint("check where the repository comes from: no real project has that many")
        }
        false => Error::new(Kind::Git, "reading the history takes longer than a call may take")
            .hint("run `tiro import git`, which has no time limit"),
    }
}

struct Visit {
    node: u32,
    next: u32,
}

/// The commits that the walk reached, and the links to their parents. A commit is identified by its index in `nodes`.
#[derive(Default)]
struct Graph {
    nodes: Vec<Node>,
    edges: Vec<u32>,
    index: HashMap<Sha, u32>,
}

struct Node {
    sha: Sha,
    first_edge: u32,
    edges: u32,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Wanted,
    LeftOut,
}

impl Graph {
    fn node(&mut self, sha: Sha) -> u32 {
        *self.index.entry(sha).or_insert_with(|| {
            self.nodes.push(Node { sha, first_edge: 0, edges: 0, state: State::New });
            self.nodes.len() as u32 - 1
        })
    }

    fn set_parents(&mut self, node: usize, parents: Vec<Sha>) {
        let first = self.edges.len();
        for parent in parents {
            let parent = self.node(parent);
            self.edges.push(parent);
        }
        self.nodes[node].first_edge = first as u32;
        self.nodes[node].edges = (self.edges.len() - first) as u32;
    }

    fn parents(&self, node: usize) -> &[u32] {
        let Node { first_edge, edges, .. } = self.nodes[node];
        &self.edges[first_edge as usize..(first_edge + edges) as usize]
    }
}

/// Labels each commit with its branch, as [`History::branch`] defines it. Returns the labels, which are indices of
/// branches, and the names of the branches.
fn label(graph: &mut Graph, tips: &[Tip]) -> (Vec<Option<u32>>, Vec<String>) {
    #[derive(Clone, Copy, PartialEq)]
    enum Led {
        No,
        By(u32),
        Several,
    }
    let named: Vec<(&str, u32)> = tips
        .iter()
        .filter_map(|tip| Some((tip.branch.as_deref()?, graph.index.get(&tip.sha).copied()?)))
        .collect();
    let mut labels = vec![None; graph.nodes.len()];
    let names = named.iter().map(|(name, _)| (*name).to_owned()).collect();
    if named.len() < 2 {
        return (labels, names);
    }
    for (branch, (_, tip)) in named.iter().enumerate() {
        let mut next = Some(*tip);
        while let Some(node) = next.filter(|&node| labels[node as usize].is_none()) {
            labels[node as usize] = Some(branch as u32);
            next = graph.parents(node as usize).first().copied();
        }
    }
    // Each commit is visited at most twice, for the first two branches that reach it. After that it is known that
    // several branches reach it.
    let mut led = vec![Led::No; graph.nodes.len()];
    for (branch, (_, tip)) in named.iter().enumerate() {
        let branch = branch as u32;
        let mut left = vec![*tip];
        while let Some(node) = left.pop() {
            let node = node as usize;
            let next = match led[node] {
                Led::No => Led::By(branch),
                Led::By(other) if other != branch => Led::Several,
                Led::By(_) | Led::Several => continue,
            };
            led[node] = next;
            left.extend(graph.parents(node));
        }
    }
    for (label, led) in labels.iter_mut().zip(led) {
        *label = label.filter(|branch| led == Led::By(*branch));
    }
    (labels, names)
}
