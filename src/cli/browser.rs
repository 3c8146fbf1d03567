//! The desktop's browser, as samply and pprof open it: `$BROWSER`, else `xdg-open`.
//!
//! It is looked for before anything is read, so that nobody waits for a page that cannot be shown. No shell runs, and the only
//! argument that is not the user's own is the path of the file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;

/// What shows a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Browser {
    program: PathBuf,
    /// With `%s` where the file's name goes; behind them if it is nowhere.
    arguments: Vec<String>,
}

/// How long a program may take to say that it cannot show the file. Browsers themselves stay.
const PATIENCE: Duration = Duration::from_secs(3);

impl Browser {
    /// The one that the user named, else the desktop's.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn find() -> anyhow::Result<Self> {
        let named = std::env::var("BROWSER").unwrap_or_default();
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::of(&named, &path).with_context(|| match named.as_str() {
            "" => "--open: no browser here: set BROWSER or install xdg-open (xdg-utils), or write \
                   the page with -o FILE.html"
                .to_owned(),
            named => format!(
                "--open: neither BROWSER={named} nor xdg-open is here; write the page with -o FILE.html"
            ),
        })
    }

    /// `$BROWSER` is a list of commands with `:` between them, of which the first that is there counts.
    fn of(named: &str, path: &OsString) -> Option<Self> {
        let mut commands = named.split(':').chain(["xdg-open"]);
        commands.find_map(|command| {
            let mut words = command.split_whitespace().map(str::to_owned);
            let program = words.next()?;
            let is_program = |file: &PathBuf| is_program(file);
            let program = if program.contains('/') {
                Some(PathBuf::from(program)).filter(is_program)
            } else {
                let mut files = std::env::split_paths(path).map(|folder| folder.join(&program));
                files.find(is_program)
            };
            Some(Self {
                program: program?,
                arguments: words.collect(),
            })
        })
    }

    /// Shows a file.
    ///
    /// # Errors
    /// When the program cannot be run, or says soon that it cannot do it.
    pub(super) fn show(&self, file: &Path) -> anyhow::Result<()> {
        let program = self.program.display();
        let file = std::path::absolute(file)?;
        let shown = file.display();
        let mut command = Command::new(&self.program);
        let has_place = self.arguments.iter().any(|word| word.contains("%s"));
        for word in &self.arguments {
            let place = file.to_string_lossy();
            command.arg(word.replace("%s", &place));
        }
        if !has_place {
            command.arg(&file);
        }
        let null = Stdio::null;
        command.stdin(null()).stdout(null()).stderr(null());
        let child = command.spawn();
        let mut child = child.with_context(|| format!("--open: {program}; the page is {shown}"))?;
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = child.try_wait()? {
                anyhow::ensure!(
                    ExitStatus::success(&status),
                    "--open: {program} could not show it ({status}); the page is {shown}"
                );
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

fn is_program(file: &Path) -> bool {
    let Ok(meta) = file.metadata() else {
        return false;
    };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    meta.is_file() && may_run
}

/// A file of this name in a new folder for temporary files that nobody else can look into. It stays: the browser reads it when it
/// likes.
///
/// # Errors
/// When no folder can be made.
pub(super) fn temporary(name: &str) -> anyhow::Result<PathBuf> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_nanos());
    let folder = format!("pjit-{}-{now:x}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let made = builder.create(&folder);
    made.with_context(|| format!("--open: {}", folder.display()))?;
    Ok(folder.join(name))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_first_command_that_is_there_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().as_os_str().to_owned();
        let add = |name: &str, mode: u32| {
            let file = folder.path().join(name);
            std::fs::write(&file, "").expect("written");
            let rights = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&file, rights).expect("set");
        };
        assert_eq!(Browser::of("", &path), None);
        add("xdg-open", 0o644);
        assert_eq!(Browser::of("", &path), None, "no program");
        add("xdg-open", 0o755);
        add("fox", 0o755);
        let found = |named: &str| {
            let found = Browser::of(named, &path).expect("a browser");
            let name = found.program.file_name().expect("a name");
            format!("{} {}", name.to_string_lossy(), found.arguments.join(" "))
        };
        assert_eq!(found(""), "xdg-open ");
        assert_eq!(found("nothing:fox -new %s"), "fox -new %s");
        assert_eq!(found("nothing"), "xdg-open ");
    }
}
