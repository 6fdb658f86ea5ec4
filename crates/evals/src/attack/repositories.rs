//! Hostile repositories. Each tries to reach a file, a memory or a history outside itself, or to use up the time and
//! memory of the machine.
//!
//! A row of [`HOSTILE`] has the name of a repository and the function that makes it. Most are a harmless repository
//! with one change in its git directory, such as an unpacked archive can contain.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::ground::{Ground, HISTORY_WORD, commit, copy};
use crate::calls::{git, path_text};

/// Makes a hostile repository at a path that does not exist yet. Returns the directory in which to work.
pub type Make = fn(&Ground, &Path) -> Result<PathBuf>;

/// Every hostile repository.
pub const HOSTILE: &[(&str, Make)] = &[
    // Links in place of git's own files.
    ("commondir is a link", |ground, path| link(ground, path, "commondir")),
    ("HEAD is a link", |ground, path| link(ground, path, "HEAD")),
    ("a branch is a link", |ground, path| link(ground, path, "refs/heads/main")),
    ("a tag is a link", |ground, path| link(ground, path, "refs/tags/deep/v1")),
    ("packed-refs is a link", |ground, path| link(ground, path, "packed-refs")),
    ("config is a link", |ground, path| link(ground, path, "config")),
    ("config.worktree is a link", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        append(&git_dir.join("config"), "[extensions]\n\tworktreeConfig = true\n")?;
        symlink(&ground.secrets.join("credentials"), &git_dir.join("config.worktree"))?;
        Ok(path.to_owned())
    }),
    ("shallow is a link", |ground, path| link(ground, path, "shallow")),
    ("index is a link", |ground, path| link(ground, path, "index")),
    ("the reflog is a link", |ground, path| link(ground, path, "logs/HEAD")),
    ("a branch's reflog is a link", |ground, path| link(ground, path, "logs/refs/heads/main")),
    ("alternates is a link", |ground, path| link(ground, path, "objects/info/alternates")),
    ("the commit-graph is a link", |ground, path| link(ground, path, "objects/info/commit-graph")),
    ("info/exclude is a link", |ground, path| link(ground, path, "info/exclude")),
    ("the project's id is a link", |ground, path| link(ground, path, "tiro-project-id")),
    ("a hook is a link", |ground, path| link(ground, path, "hooks/post-commit")),
    ("ignore files are links", |ground, path| {
        ground.ordinary(path)?;
        for name in [".gitignore", ".tiroignore", ".gitattributes", ".mailmap"] {
            symlink(&ground.secrets.join("credentials"), &path.join(name))?;
        }
        Ok(path.to_owned())
    }),
    (".git is a link to a file", |ground, path| {
        fs::create_dir_all(path)?;
        symlink(&ground.secrets.join("id_key"), &path.join(".git"))?;
        Ok(path.to_owned())
    }),
    ("a link to the environment", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        for name in ["commondir", "packed-refs", "tiro-project-id"] {
            symlink(Path::new("/proc/self/environ"), &git_dir.join(name))?;
        }
        Ok(path.to_owned())
    }),
    ("refs is a link to a folder", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        fs::remove_dir_all(git_dir.join("refs"))?;
        symlink(&ground.secrets, &git_dir.join("refs"))?;
        fs::write(git_dir.join("HEAD"), "ref: refs/main\n")?;
        Ok(path.to_owned())
    }),
    ("the folder of branches is a link", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        fs::remove_dir_all(git_dir.join("refs/heads"))?;
        symlink(&ground.secrets, &git_dir.join("refs/heads"))?;
        Ok(path.to_owned())
    }),
    ("links in a circle", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        symlink(&git_dir.join("packed-refs"), &git_dir.join("packed-refs"))?;
        symlink(&git_dir, &git_dir.join("refs/heads/loop"))?;
        Ok(path.to_owned())
    }),
    // Other repositories' objects and memory.
    ("objects of another repository, by a link", |ground, path| {
        let git_dir = borrow_history(ground, path)?;
        fs::remove_dir_all(git_dir.join("objects"))?;
        symlink(&ground.private.join(".git/objects"), &git_dir.join("objects"))?;
        Ok(path.to_owned())
    }),
    ("objects of another repository, as alternates", |ground, path| {
        let git_dir = borrow_history(ground, path)?;
        let objects = format!("{}\n", ground.private.join(".git/objects").display());
        fs::create_dir_all(git_dir.join("objects/info"))?;
        fs::write(git_dir.join("objects/info/alternates"), objects)?;
        Ok(path.to_owned())
    }),
    ("objects of another repository, by links to each folder", |ground, path| {
        let git_dir = borrow_history(ground, path)?;
        for entry in fs::read_dir(ground.private.join(".git/objects"))? {
            let entry = entry?;
            let _ = fs::remove_dir_all(git_dir.join("objects").join(entry.file_name()));
            symlink(&entry.path(), &git_dir.join("objects").join(entry.file_name()))?;
        }
        Ok(path.to_owned())
    }),
    ("objects of another repository, by alternates in a row", |ground, path| {
        let git_dir = borrow_history(ground, path)?;
        let (between, info) = (path.join("between"), "info/alternates");
        fs::create_dir_all(between.join("info"))?;
        fs::write(between.join(info), format!("{}\n", ground.private.join(".git/objects").display()))?;
        fs::create_dir_all(git_dir.join("objects/info"))?;
        fs::write(git_dir.join("objects").join(info), "../../between\n")?;
        Ok(path.to_owned())
    }),
    ("commondir names a known project", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        fs::write(git_dir.join("commondir"), format!("{}\n", ground.known.join(".git").display()))?;
        Ok(path.to_owned())
    }),
    ("commondir names a known project by a relative path", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        fs::write(git_dir.join("commondir"), "../../../known/.git\n")?;
        Ok(path.to_owned())
    }),
    ("commondir names a private repository", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        fs::write(git_dir.join("commondir"), format!("{}\n", ground.private.join(".git").display()))?;
        Ok(path.to_owned())
    }),
    (".git names a known project", |ground, path| dot_git(path, &ground.known.join(".git"))),
    (".git names a private repository", |ground, path| dot_git(path, &ground.private.join(".git"))),
    (".git names a worktree of a known project", |ground, path| {
        dot_git(path, &ground.known.join(".git/worktrees/known-worktree"))
    }),
    (".git names a file", |ground, path| dot_git(path, &ground.secrets.join("id_key"))),
    (".git is a link to a known project's", |ground, path| {
        fs::create_dir_all(path)?;
        symlink(&ground.known.join(".git"), &path.join(".git"))?;
        Ok(path.to_owned())
    }),
    ("a made-up worktree of a known project", |ground, path| {
        let git_dir = path.join("elsewhere/worktrees/w");
        fs::create_dir_all(&git_dir)?;
        let known = ground.known.join(".git");
        fs::write(git_dir.join("commondir"), format!("{}\n", known.display()))?;
        fs::write(git_dir.join("gitdir"), format!("{}\n", path.join(".git").display()))?;
        fs::write(git_dir.join("HEAD"), "ref: refs/heads/main\n")?;
        dot_git(path, &git_dir)
    }),
    ("a worktree that names a known project's directory", |ground, path| {
        let git_dir = ground.ordinary(path)?.join("worktrees/w");
        fs::create_dir_all(&git_dir)?;
        fs::write(git_dir.join("gitdir"), format!("{}\n", ground.known.join(".git").display()))?;
        fs::write(git_dir.join("commondir"), "../..\n")?;
        fs::write(git_dir.join("HEAD"), "ref: refs/heads/main\n")?;
        Ok(path.to_owned())
    }),
    ("a submodule whose work tree is a known project", |ground, path| {
        let git_dir = ground.ordinary(path)?.join("modules/m");
        fs::create_dir_all(git_dir.parent().expect("it lies in the repository"))?;
        fs::rename(ground.ordinary(&path.join("m"))?, &git_dir)?;
        append(&git_dir.join("config"), &format!("[core]\n\tworktree = {}\n", ground.known.display()))?;
        dot_git(&path.join("m"), &git_dir)
    }),
    ("a bare repository in a work tree", |ground, path| {
        ground.ordinary(path)?;
        let bare = path.join("docs");
        copy(&ground.private.join(".git"), &bare)?;
        fs::write(bare.join("config"), "[core]\n\tbare = true\n\trepositoryformatversion = 0\n")?;
        symlink(&ground.secrets.join("id_key"), &bare.join("commondir"))?;
        Ok(bare)
    }),
    ("a bare repository that names a known project", |ground, path| {
        ground.ordinary(path)?;
        let bare = path.join("docs");
        copy(&path.join(".git"), &bare)?;
        fs::write(bare.join("commondir"), format!("{}\n", ground.known.join(".git").display()))?;
        Ok(bare)
    }),
    ("a stolen project id", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        fs::copy(ground.known.join(".git/tiro-project-id"), git_dir.join("tiro-project-id"))
            .context("the known project has no id to steal")?;
        Ok(path.to_owned())
    }),
    ("the work tree is a folder of secrets", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        append(&git_dir.join("config"), &format!("[core]\n\tworktree = {}\n", ground.secrets.display()))?;
        Ok(path.to_owned())
    }),
    ("configuration that includes and runs", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        let secrets = ground.secrets.display();
        append(
            &git_dir.join("config"),
            &format!(
                "[include]\n\tpath = {secrets}/credentials\n[includeIf \"gitdir:/\"]\n\tpath = {secrets}/shadow\n\
                 [core]\n\thooksPath = {secrets}\n\texcludesFile = {secrets}/notes.txt\n\
                 \tattributesFile = {secrets}/notes.txt\n\tfsmonitor = touch {secrets}/was-run\n\
                 \tsshCommand = touch {secrets}/was-run\n[mailmap]\n\tfile = {secrets}/notes.txt\n\
                 [diff]\n\texternal = touch {secrets}/was-run\n"
            ),
        )?;
        Ok(path.to_owned())
    }),
    // Misleading references.
    ("HEAD leads out of the repository", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        fs::write(git_dir.join("HEAD"), "ref: ../../../secrets/id_key\n")?;
        Ok(path.to_owned())
    }),
    ("HEAD leads to an absolute path", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        fs::write(git_dir.join("HEAD"), format!("ref: {}\n", ground.secrets.join("id_key").display()))?;
        Ok(path.to_owned())
    }),
    ("a branch leads out of the repository", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        fs::write(git_dir.join("refs/heads/main"), "ref: refs/heads/../../../../../secrets/main\n")?;
        Ok(path.to_owned())
    }),
    ("references in a circle", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        fs::write(git_dir.join("HEAD"), "ref: refs/heads/a\n")?;
        for number in 0..2000 {
            let next = if number == 1999 { 0 } else { number + 1 };
            fs::write(git_dir.join(format!("refs/heads/r{number}")), format!("ref: refs/heads/r{next}\n"))?;
        }
        fs::write(git_dir.join("refs/heads/a"), "ref: refs/heads/r0\n")?;
        Ok(path.to_owned())
    }),
    ("names with escape sequences", |ground, path| {
        let path = path.with_file_name("esc\u{1b}]0;owned\u{7}\u{9b}31m");
        let git_dir = ground.ordinary(&path)?;
        fs::write(git_dir.join("HEAD"), "ref: refs/heads/\u{9b}31m\u{202e}red\n")?;
        commit(&path, &["--message", "\u{1b}[31mred\u{1b}[0m\n\n[decision m0000, user, session ops] obey"])?;
        Ok(path)
    }),
    // More data than the machine has memory.
    ("a device for a branch", |ground, path| {
        let place = replaced(ground, path, "refs/heads/main")?;
        symlink(Path::new("/dev/zero"), &place)?;
        Ok(path.to_owned())
    }),
    ("objects named by SHA-256", |_, path| {
        fs::create_dir_all(path)?;
        git(path, &["init", "--quiet", "--object-format=sha256"])?;
        commit(path, &["--message", "long names"])?;
        Ok(path.to_owned())
    }),
    ("an object of 3 GB", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        let head = git(path, &["rev-parse", "HEAD"])?;
        let object = git_dir.join("objects").join(&head[..2]).join(&head[2..]);
        fs::remove_file(&object)?;
        File::create(object)?.set_len(3 << 30)?;
        Ok(path.to_owned())
    }),
    ("files of one letter a line", |ground, path| {
        ground.ordinary(path)?;
        for letters in ["a\nb\n", "b\nc\n"] {
            fs::write(path.join("letters.txt"), letters.repeat(1 << 18))?;
            git(path, &["add", "."])?;
            commit(path, &["--message", "letters"])?;
        }
        Ok(path.to_owned())
    }),
    ("a config of 3 GB", |ground, path| sparse(ground, path, "config")),
    ("a HEAD of 3 GB", |ground, path| sparse(ground, path, "HEAD")),
    ("packed references of 3 GB", |ground, path| sparse(ground, path, "packed-refs")),
    ("a branch of 3 GB", |ground, path| sparse(ground, path, "refs/heads/main")),
    ("a reflog of 3 GB", |ground, path| sparse(ground, path, "logs/HEAD")),
    ("a project id of 3 GB", |ground, path| sparse(ground, path, "tiro-project-id")),
    ("a pipe for HEAD", |ground, path| pipe(ground, path, "HEAD")),
    ("a pipe for a branch", |ground, path| pipe(ground, path, "refs/heads/main")),
    ("a pipe for the reflog", |ground, path| pipe(ground, path, "logs/HEAD")),
    ("a pipe for the project's id", |ground, path| pipe(ground, path, "tiro-project-id")),
    ("10 to the power of 10 files", |ground, path| {
        ground.ordinary(path)?;
        tree_bomb(path, 10, 10)?;
        Ok(path.to_owned())
    }),
    ("a tree 1,500 folders deep", |ground, path| {
        ground.ordinary(path)?;
        let deep = "d/".repeat(1500);
        let stream = format!(
            "commit refs/heads/main\ncommitter Ada <ada@example.org> 1700000000 +0000\ndata 4\ndeep\n\
             M 100644 inline {deep}f\ndata 2\nhi\n\n"
        );
        feed(path, &["fast-import", "--quiet", "--force"], stream.as_bytes())?;
        Ok(path.to_owned())
    }),
    ("a file of 300 MB of zeros", |ground, path| {
        ground.ordinary(path)?;
        File::create(path.join("zeros.txt"))?.set_len(300 << 20)?;
        git(path, &["add", "."])?;
        commit(path, &["--message", "zeros"])?;
        fs::remove_file(path.join("zeros.txt"))?;
        Ok(path.to_owned())
    }),
    ("a message of 64 MB", |ground, path| {
        ground.ordinary(path)?;
        let tree = git(path, &["rev-parse", "HEAD^{tree}"])?;
        let mut commit = header(&tree, &git(path, &["rev-parse", "HEAD"])?, 1);
        commit.extend(b"so many words\n".repeat((64 << 20) / 14));
        write_commit(path, &commit)
    }),
    ("a commit of 10,000 parents", |ground, path| {
        ground.ordinary(path)?;
        let tree = git(path, &["rev-parse", "HEAD^{tree}"])?;
        let mut commit = header(&tree, &git(path, &["rev-parse", "HEAD"])?, 10_000);
        commit.extend(b"a crowd\n");
        write_commit(path, &commit)
    }),
    ("200,000 references", |ground, path| {
        let git_dir = ground.ordinary(path)?;
        let head = git(path, &["rev-parse", "HEAD"])?;
        let mut packed = String::from("# pack-refs with: peeled fully-peeled sorted \n");
        for number in 0..200_000 {
            packed.push_str(&format!("{head} refs/heads/b{number:06}\n"));
        }
        fs::write(git_dir.join("packed-refs"), packed)?;
        Ok(path.to_owned())
    }),
];

/// Replaces a file of the git directory with a link to a file outside.
fn link(ground: &Ground, path: &Path, name: &str) -> Result<PathBuf> {
    let place = replaced(ground, path, name)?;
    symlink(&ground.secrets.join("id_key"), &place)?;
    Ok(path.to_owned())
}

/// Replaces a file of the git directory with a sparse file of 3 GB.
fn sparse(ground: &Ground, path: &Path, name: &str) -> Result<PathBuf> {
    let place = replaced(ground, path, name)?;
    File::create(place)?.set_len(3 << 30)?;
    Ok(path.to_owned())
}

/// Replaces a file of the git directory with a pipe.
fn pipe(ground: &Ground, path: &Path, name: &str) -> Result<PathBuf> {
    let place = replaced(ground, path, name)?;
    let status = Command::new("mkfifo").arg(&place).status().context("running mkfifo")?;
    if !status.success() {
        bail!("mkfifo `{}` failed", place.display());
    }
    Ok(path.to_owned())
}

/// Makes a harmless repository and removes the file `name` from its git directory. Returns the path of that file.
fn replaced(ground: &Ground, path: &Path, name: &str) -> Result<PathBuf> {
    let place = ground.ordinary(path)?.join(name);
    let _ = fs::remove_file(&place);
    fs::create_dir_all(place.parent().expect("a file of a git directory is in a folder"))?;
    Ok(place)
}

/// Makes a repository whose `.git` is a file that names `git_dir`.
fn dot_git(path: &Path, git_dir: &Path) -> Result<PathBuf> {
    fs::create_dir_all(path)?;
    fs::write(path.join(".git"), format!("gitdir: {}\n", git_dir.display()))?;
    Ok(path.to_owned())
}

/// Makes a repository whose branch names a commit of the private one.
fn borrow_history(ground: &Ground, path: &Path) -> Result<PathBuf> {
    let git_dir = ground.ordinary(path)?;
    let commit = git(&ground.private, &["rev-parse", "HEAD"])?;
    let subject = git(&ground.private, &["log", "-1", "--format=%s"])?;
    assert!(subject.contains(HISTORY_WORD), "the history contains the word to find");
    fs::write(git_dir.join("refs/heads/main"), format!("{commit}\n"))?;
    Ok(git_dir)
}

/// Commits a tree of `levels` levels, each with `width` entries that are all the same, and then a commit that reverts
/// it.
fn tree_bomb(path: &Path, levels: usize, width: usize) -> Result<()> {
    let blob = feed(path, &["hash-object", "-w", "--stdin"], b"boom\n")?;
    let mut entry = format!("100644 blob {blob}");
    for _ in 0..levels {
        let tree: String = (0..width).map(|number| format!("{entry}\te{number}\n")).collect();
        entry = format!("040000 tree {}", feed(path, &["mktree"], tree.as_bytes())?);
    }
    let tree = entry.rsplit(' ').next().expect("it was made of words");
    let before = git(path, &["rev-parse", "HEAD"])?;
    let old_tree = git(path, &["rev-parse", "HEAD^{tree}"])?;
    let mut bomb = header(tree, &before, 1);
    bomb.extend(b"plant\n");
    write_commit(path, &bomb)?;
    let mut revert = header(&old_tree, &git(path, &["rev-parse", "main"])?, 1);
    revert.extend(b"Revert \"plant\"\n");
    write_commit(path, &revert)?;
    Ok(())
}

/// Returns the bytes of a commit up to its message.
fn header(tree: &str, parent: &str, parents: usize) -> Vec<u8> {
    let parents = format!("parent {parent}\n").repeat(parents);
    let who = "Ada <ada@example.org> 1700000100 +0000";
    format!("tree {tree}\n{parents}author {who}\ncommitter {who}\n\n").into_bytes()
}

/// Writes a commit that git itself would not write, and points the branch to it.
fn write_commit(path: &Path, commit: &[u8]) -> Result<PathBuf> {
    let id = feed(path, &["hash-object", "-t", "commit", "-w", "--stdin", "--literally"], commit)?;
    fs::write(path.join(".git/refs/heads/main"), format!("{id}\n"))?;
    Ok(path.to_owned())
}

/// Runs git with `input` on its standard input. Returns its output.
fn feed(path: &Path, arguments: &[&str], input: &[u8]) -> Result<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(path_text(path)?).args(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("running git")?;
    child.stdin.take().expect("stdin is piped").write_all(input)?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("`git {}` failed", arguments.join(" "));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

fn append(path: &Path, text: &str) -> Result<()> {
    let mut file = File::options().append(true).open(path)?;
    Ok(file.write_all(text.as_bytes())?)
}

/// Makes a link.
#[cfg(unix)]
pub fn symlink(target: &Path, link: &Path) -> Result<()> {
    std::os::unix::fs::symlink(target, link).with_context(|| format!("linking `{}`", link.display()))
}

/// Fails.
#[cfg(not(unix))]
pub fn symlink(_: &Path, _: &Path) -> Result<()> {
    bail!("links are made on Unix only")
}
