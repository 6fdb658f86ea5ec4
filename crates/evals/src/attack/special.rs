//! Files that are no ordinary files of text, named as context and as attachments: pipes, devices, large files and folders.
//!
//! Each call must end in bounded time and memory, and either send the file or list it as left out.

use std::fs::{self, File};
use std::path::Path;
#[cfg(unix)]
use std::process::Command;

use anyhow::Result;
#[cfg(unix)]
use anyhow::{Context, ensure};
use serde_json::json;

use super::repositories::symlink;
use super::scene::{Scene, count};
use crate::client::{Tiro, last_chars};
use crate::stats::{Goal, Report};

/// The longest time that a consult with special files may take, in seconds.
const MOST_SECONDS: f64 = 30.0;

/// Names each special file as context and as attachment, and measures time and memory.
pub fn attack(tiro: &Tiro, report: &mut Report) -> Result<()> {
    let scene = Scene::create(tiro)?;
    let names = make_special_files(&scene)?;
    let mut server = scene.serve(200_000, 0)?;
    let (mut slowest, mut unnamed) = ((0.0, String::new()), Vec::new());
    for name in &names {
        for kind in ["context", "attachments"] {
            scene.searches(&[], |_| "I have looked at it.".to_owned());
            let told = scene.ask(&mut server, &format!("{kind} {name}"), json!({kind: [name]}))?;
            let seconds = told.answer.elapsed.as_secs_f64();
            eprintln!("{kind} {name}: {seconds:.2} s, {:.0} MiB", server.peak_mib().unwrap_or(0.0));
            if seconds > slowest.0 {
                slowest = (seconds, format!("{kind} {name}"));
            }
            let sent = told.asked.iter().any(|asked| String::from_utf8_lossy(&asked.body).contains(name));
            let is_skipped = told.receipt()["skipped"].to_string().contains(name);
            if !told.is_answered() || !sent && !is_skipped {
                unnamed.push(format!("{kind} {name}: {}", last_chars(&told.answer.text(), 300)));
            }
        }
    }
    let largest = server.peak_mib().unwrap_or(0.0);
    eprintln!("slowest: {slowest:?}");
    report.add("consults about pipes, devices, large files and folders", 2.0 * names.len() as f64, "");
    count(report, "  without an answer, or neither sent nor listed", unnamed);
    report.aim("  slowest answer", slowest.0, "s", Goal::AtMost(MOST_SECONDS));
    report.aim("  largest process", largest, "MiB", Goal::AtMost(super::MEMORY_MIB));
    report.broken |= slowest.0 > MOST_SECONDS || largest > super::MEMORY_MIB;
    Ok(())
}

/// Makes the files and returns their names.
fn make_special_files(scene: &Scene) -> Result<Vec<&'static str>> {
    let path = |name: &str| scene.place.project.join(name);
    make_nodes(&scene.place.project)?;
    symlink(&path("loop.md"), &path("loop.md"))?;
    symlink(Path::new("/dev/zero"), &path("zero.md"))?;
    File::create(path("sparse.md"))?.set_len(1 << 30)?;
    scene.write("line.md", "a b1".repeat(10 << 18))?;
    scene.write("shorter-line.md", "a b1".repeat(240_000))?;
    scene.write("binary.md", [0, 1, 2, 255].repeat(1 << 16))?;
    for number in 0..20_000 {
        scene.write(&format!("folder-of-files/{}/{number}.md", number % 20), format!("file {number}\n"))?;
    }
    let lines: String = (0..20_000).map(|n| format!("line {n} of a file that has many names\n")).collect();
    scene.write("folder-of-names/0.md", &lines)?;
    for number in 1..600 {
        fs::hard_link(path("folder-of-names/0.md"), path(&format!("folder-of-names/{number}.md")))?;
    }
    Ok(vec![
        "pipe.md",
        "socket.md",
        "loop.md",
        "zero.md",
        "sparse.md",
        "line.md",
        "shorter-line.md",
        "binary.md",
        "unreadable.md",
        "folder-of-files",
        "folder-of-names",
    ])
}

/// Makes a pipe, a socket, and a file that may not be read, except by root.
#[cfg(unix)]
fn make_nodes(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let status = Command::new("mkfifo").arg(folder.join("pipe.md")).status().context("running mkfifo")?;
    ensure!(status.success(), "mkfifo failed");
    drop(std::os::unix::net::UnixListener::bind(folder.join("socket.md"))?);
    let unreadable = folder.join("unreadable.md");
    fs::write(&unreadable, "a text")?;
    Ok(fs::set_permissions(unreadable, fs::Permissions::from_mode(0o000))?)
}

/// Fails.
#[cfg(not(unix))]
fn make_nodes(_: &Path) -> Result<()> {
    anyhow::bail!("pipes and sockets are made on Unix only")
}
