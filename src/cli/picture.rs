//! Where a picture goes and in which format.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::verb::wrong_usage;
use crate::output::{html, svg};

/// Formats of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PictureFormat {
    /// A picture drawn by inferno
    Svg,
    /// An interactive page in one file
    Html,
}

/// Where a picture goes.
#[derive(Debug)]
pub(super) struct Target {
    /// Nothing stands for standard output.
    pub(super) path: Option<PathBuf>,
    pub(super) format: PictureFormat,
}

impl Target {
    /// Settles path and format.
    pub(super) fn of(
        output: Option<&Path>,
        format: Option<PictureFormat>,
        force: bool,
    ) -> anyhow::Result<Self> {
        let is_terminal = std::io::stdout().is_terminal();
        let path = match output {
            Some(path) if path.as_os_str() == "-" => None,
            Some(path) => Some(path.to_owned()),
            None if is_terminal => {
                let path = Path::new(match format {
                    Some(PictureFormat::Html) => "flamegraph.html",
                    _ => "flamegraph.svg",
                });
                anyhow::ensure!(
                    force || may_be_replaced(path),
                    "{} exists and is not pjit's: -o FILE names another one, -f replaces it",
                    path.display()
                );
                Some(path.to_owned())
            }
            None => None,
        };
        let format = match format {
            Some(format) => format,
            None => path.as_deref().map_or(Ok(PictureFormat::Svg), format_of)?,
        };
        Ok(Self { path, format })
    }
}

/// The format by a file's name.
fn format_of(path: &Path) -> anyhow::Result<PictureFormat> {
    let extension = path
        .extension()
        .map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        None | Some("svg") => Ok(PictureFormat::Svg),
        Some("html" | "htm") => Ok(PictureFormat::Html),
        Some(other) => Err(wrong_usage(format!(
            "flamegraph writes no .{other} file: {}\nhint: -o flame.svg or -o flame.html",
            path.display()
        ))),
    }
}

/// Whether nothing of the user's is lost when the file is replaced.
fn may_be_replaced(path: &Path) -> bool {
    let Ok(file) = std::fs::File::open(path) else {
        return !path.exists();
    };
    let mut beginning = Vec::new();
    let read = file.take(1 << 12).read_to_end(&mut beginning);
    read.is_ok() && (svg::is_ours(&beginning) || html::is_ours(&beginning))
}
