//! Files and folders of a project that are replaced by links while consults read them.
//!
//! The links lead to files with the same names in a folder outside the project. Whatever the moment, none of their words
//! may be sent, shown, logged or stored.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::ground::FILE_WORD;
use super::repositories::symlink;
use super::scene::{ALLOWED, Scene, count, lines_with};
use crate::client::Tiro;
use crate::stats::{Goal, Report};

/// Asks about files for as long as `time`, while a thread replaces them by links and back.
pub fn attack(time: Duration, tiro: &Tiro, report: &mut Report) -> Result<()> {
    let scene = Scene::create(tiro)?;
    let inside = format!("{ALLOWED}\n").repeat(2000);
    for (folder, text) in [(&scene.outside, FILE_WORD), (&scene.place.project, ALLOWED)] {
        fs::create_dir_all(folder.join("d/deep"))?;
        for file in ["a.txt", "d/b.txt", "d/deep/c.txt"] {
            fs::write(folder.join(file), inside.replace(ALLOWED, text))?;
        }
    }
    let mut servers = [scene.serve(100_000, 0)?, scene.serve(100_001, 1)?];
    scene.searches(&["a.txt", "d/b.txt", "d/deep/c.txt"], |_| "I have looked at it.".to_owned());
    let swapping = Swapping::start(scene.place.project.clone(), scene.outside.clone());
    let paths = json!(["a.txt", "d", "d/b.txt", "d/deep/c.txt", "."]);
    let (mut consults, mut found, mut refused, mut shown) = (0, 0, 0, Vec::new());
    let began = Instant::now();
    while began.elapsed() < time || consults < 40 {
        let arguments = match consults % 4 {
            0 | 1 => json!({"context": paths, "attachments": paths}),
            2 => json!({"context": paths}),
            _ => json!({"attachments": paths}),
        };
        let told = scene.ask(&mut servers[consults % 2], &format!("session {consults}"), arguments)?;
        let said = told.everything();
        found += usize::from(said.contains(ALLOWED));
        let skipped = told.receipt()["skipped"].to_string() + &told.answer.text();
        refused +=
            usize::from(skipped.contains("leads out of the project") || skipped.contains("was replaced"));
        shown.extend(said.contains(FILE_WORD).then(|| said.clone()));
        consults += 1;
    }
    let swaps = swapping.stop()?;
    for server in servers {
        shown.extend(lines_with(&server.log(), FILE_WORD));
        server.close()?;
    }
    shown.extend(super::stored(&scene.place.data_dir)?.iter().map(|path| path.display().to_string()));
    report.add("consults while links are swapped in", consults as f64, "");
    report.add("  swaps meanwhile", swaps as f64, "");
    // Otherwise nothing was tried.
    report.aim("  consults that read the files", found as f64, "", Goal::AtLeast(1.0));
    report.aim("  consults that met a link", refused as f64, "", Goal::AtLeast(1.0));
    report.broken |= found == 0 || refused == 0;
    count(report, "  requests, answers, logs, store files that show a file outside", shown);
    Ok(())
}

/// A thread that replaces files by links and back.
struct Swapping {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Result<usize>>,
}

impl Swapping {
    fn start(project: PathBuf, outside: PathBuf) -> Swapping {
        let ends = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            let mut swaps = 0;
            while !is_over.load(Ordering::Relaxed) {
                for name in ["a.txt", "d/deep", "d"] {
                    let (path, aside) = (project.join(name), project.with_file_name("aside"));
                    fs::rename(&path, &aside)?;
                    symlink(&outside.join(name), &path)?;
                    // Some rounds leave the link, others the file, for the length of a call.
                    std::thread::sleep(Duration::from_micros([0, 300, 5000][swaps % 3]));
                    fs::remove_file(&path)?;
                    fs::rename(&aside, &path)?;
                    std::thread::sleep(Duration::from_micros([0, 0, 200, 5000][swaps % 4]));
                    swaps += 1;
                }
            }
            Ok(swaps)
        });
        Swapping { ends, thread }
    }

    fn stop(self) -> Result<usize> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().expect("the thread does not panic")
    }
}
