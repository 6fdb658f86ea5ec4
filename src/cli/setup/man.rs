//! `tiro man`: prints the manual pages, which are generated from the help texts.
//!
//! Each subcommand has a page. Pages are named like git's pages: `tiro-import-git(1)` describes `tiro import git`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap_mangen::Man;

use crate::cli::print::Out;
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_base::humanize::counted;

/// The arguments of `tiro man`.
#[derive(clap::Args)]
pub struct Args {
    /// The subcommand, as in `tiro man import git` [default: tiro itself]
    subcommand: Vec<String>,
    /// Write the pages of all subcommands to this directory, such as `~/.local/share/man/man1`
    #[arg(long, value_name = "DIR", conflicts_with = "subcommand")]
    to: Option<PathBuf>,
}

/// A page of the manual.
struct Page {
    /// The name of its file: `tiro-import-git.1`.
    name: String,
    /// Its text, in roff.
    text: String,
}

/// Prints one page of `command` and its subcommands, or writes all pages.
pub fn run(args: Args, command: clap::Command, out: Out) -> Result<ExitCode> {
    let root = root(command);
    let line = match &args.to {
        Some(dir) => {
            let pages = pages(&root);
            write(&pages, dir)?;
            format!("{} written to `{}`", counted(pages.len(), "page", "pages"), dir.display())
        }
        None => page(named(&root, &args.subcommand)?).text,
    };
    out.line(line.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the command line, including the arguments and texts that clap adds when it builds the command.
fn root(command: clap::Command) -> clap::Command {
    let mut root = command.disable_help_subcommand(true);
    root.build();
    root
}

/// Returns the subcommand that `words` name, with one word for each level.
fn named<'a>(root: &'a clap::Command, words: &[String]) -> Result<&'a clap::Command> {
    words.iter().try_fold(root, |command, word| {
        command.find_subcommand(word).ok_or_else(|| {
            Error::bad_input(format!("no subcommand `tiro {}`", words.join(" ")))
                .hint("`tiro man` lists the subcommands")
        })
    })
}

/// Returns the pages of `command` and of its subcommands.
fn pages(command: &clap::Command) -> Vec<Page> {
    let beneath = command.get_subcommands().flat_map(pages);
    [page(command)].into_iter().chain(beneath).collect()
}

fn page(command: &clap::Command) -> Page {
    let source = concat!("tiro ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(source).manual("Tiro");
    let mut text = Vec::new();
    man.render(&mut text).expect("writing to memory can't fail");
    Page { name: man.get_filename(), text: String::from_utf8(text).expect("pages are text") }
}

fn write(pages: &[Page], dir: &Path) -> Result<()> {
    let failed = || format!("cannot write the manual to `{}`", quoted(dir.display()));
    fs::create_dir_all(dir).context(Kind::Io, failed)?;
    pages.iter().try_for_each(|page| fs::write(dir.join(&page.name), &page.text)).context(Kind::Io, failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown() -> clap::Command {
        root(crate::cli::shown())
    }

    #[test]
    fn the_manual_has_a_page_for_each_command_that_is_shown() {
        let names: Vec<String> = pages(&shown()).into_iter().map(|page| page.name).collect();
        for name in ["tiro.1", "tiro-serve.1", "tiro-init.1", "tiro-import.1", "tiro-import-claude-code.1"] {
            assert!(names.iter().any(|other| other == name), "no {name}: {names:?}");
        }
        for part in ["hook", "bench", "help"] {
            assert!(!names.iter().any(|name| name.contains(part)), "{part}: {names:?}");
        }
    }

    #[test]
    fn a_page_says_what_the_help_says() {
        let root = shown();
        let Page { name, text } = page(named(&root, &["import".to_owned(), "git".to_owned()]).unwrap());
        assert_eq!(name, "tiro-import-git.1");
        let source = format!("\"tiro {}\"", env!("CARGO_PKG_VERSION"));
        for part in
            [".TH tiro-import-git 1", &source, "\\fBtiro import git\\fR", "Import only the newest N commits"]
        {
            assert!(text.contains(part), "no {part:?}: {text}");
        }
    }

    #[test]
    fn an_unknown_subcommand_is_named() {
        let error = named(&shown(), &["import".to_owned(), "hg".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "no subcommand `tiro import hg`");
        assert!(named(&shown(), &["hook".to_owned()]).is_err());
    }

    #[test]
    fn all_pages_are_written() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("man/man1");
        write(&pages(&shown()), &to).unwrap();
        let written = fs::read_dir(&to).unwrap().count();
        assert_eq!(written, pages(&shown()).len());
        assert!(fs::read_to_string(to.join("tiro.1")).unwrap().contains("tiro\\-import(1)"));
    }
}
