//! What has to be taken along so that a recording reads alike on a machine that has nothing else.
//!
//! In: what a run that asked for everything used ([`Ledger`]), and what it looked for in vain. Out: a [`Plan`]: which bytes of
//! which files go where below the folder of the bundle, as names that do not lead out of it. Nothing is written here.
//!
//! A bundle is read as with `--symfs`: what was recorded by path lies below `symfs/`, the rest beside the recording.

mod place;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::assembly::Assembly;
use crate::check::Stages;
use crate::collect::Pc;
use crate::dso::{DsoKind, FileTrouble, KernelState};
use crate::find::path_of;
use crate::input::{Ledger, Origin, Role, Use};
use crate::needs::Needs;
use crate::session::Target;

/// What any view could ask for.
pub const NEEDS: Needs = Needs::CHAINS
    .union(Needs::ADDRESSES)
    .union(Needs::LINES)
    .union(Needs::CODE)
    .union(Needs::WASM_LINES)
    .union(Needs::ORIGINALS);

/// What is wanted of a bundle.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// Only those parts of ELF files that were looked at.
    pub slim: bool,
    /// Without texts that people wrote.
    pub without_source: bool,
}

/// What goes into a bundle.
#[derive(Debug, Default)]
pub struct Plan {
    /// The recording: one file, or those of its folder by their names in it.
    pub recording: Vec<(Option<OsString>, Origin)>,
    /// In the order of their places.
    pub items: Vec<Item>,
    /// What could not be had, and why.
    pub missing: Vec<String>,
    /// Sources among that.
    pub missing_sources: usize,
    /// Where the kernel's symbols come from, or why there are none.
    pub kernel: String,
    /// What to say about sources.
    pub warnings: Vec<String>,
}

/// A file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its name below the folder, of plain parts only.
    pub place: PathBuf,
    /// Where its bytes come from.
    pub origin: Origin,
    /// Which of them are kept, where not all are; the others become holes.
    pub kept: Option<Vec<Range<usize>>>,
    /// What it is for.
    pub role: Role,
}

/// Where a program that was mapped by this path goes below the folder of its recording: a name of plain parts that does not lead out of
/// it. `None` if nothing is left of it.
#[must_use]
pub fn place_of_program(path: &Path) -> Option<PathBuf> {
    place::inside(&Use {
        place: path.to_owned(),
        origin: Origin::Memory(Vec::new()),
        role: Role::Program,
    })
}

/// Plans a bundle after a run with this ledger.
#[must_use]
pub fn plan(stages: &Stages<'_, '_>, assembly: &Assembly, ledger: &Ledger, wanted: Wanted) -> Plan {
    let session = stages.session;
    let mut plan = Plan::default();
    session.dsos.note_builds();
    let mut uses = ledger.uses();
    if !wanted.without_source {
        uses.extend(assembly.found.iter().map(|(name, path)| Use {
            place: Path::new("/").join(name),
            origin: Origin::File(path.clone()),
            role: Role::Source,
        }));
        plan.missing_sources = assembly.not_found.len();
        plan.warnings.clone_from(&assembly.warnings);
    }
    let mut items = BTreeMap::new();
    let mut refused = Vec::new();
    for used in uses {
        if wanted.without_source && used.role == Role::Source {
            continue;
        }
        if let Err(why) = add(&mut items, ledger, wanted, &used) {
            refused.push((used, why));
        }
    }
    plan.items = items.into_values().collect();
    // Files that share a path are found by their build IDs, and are not kept twice.
    let by_build: Vec<Origin> = plan
        .items
        .iter()
        .filter(|item| place::is_of_build(&item.place))
        .map(|item| item.origin.clone())
        .collect();
    plan.items
        .retain(|item| place::is_of_build(&item.place) || !by_build.contains(&item.origin));
    refused.retain(|(used, _)| plan.items.iter().all(|item| item.origin != used.origin));
    let refused = refused.iter();
    let refused = refused.map(|(used, why)| format!("{}: {why}", used.place.display()));
    plan.missing.extend(refused);
    plan.missing.extend(ledger.unproven().iter().map(|place| {
        format!(
            "{}: not proven to be what was mapped (no build ID, other segments); --symfs DIR takes it",
            place.display()
        )
    }));
    let noted = ledger.uses();
    plan.missing.extend(looked_for_in_vain(stages, &noted));
    plan.kernel = session.dsos.kernel_source().unwrap_or_default().to_owned();
    plan
}

/// Puts a file where it will be found.
fn add(
    items: &mut BTreeMap<PathBuf, Item>,
    ledger: &Ledger,
    wanted: Wanted,
    used: &Use,
) -> Result<(), &'static str> {
    let place = place::inside(used).ok_or("its name cannot be kept")?;
    let kept = match &used.origin {
        Origin::File(file) if wanted.slim && may_be_reduced(used) => Some(ledger.reads_of(file)),
        _ => None,
    };
    match items.get(&place) {
        Some(known) if known.origin != used.origin => {
            return Err("another file has the same name");
        }
        Some(_) => return Ok(()),
        None => {}
    }
    let item = Item {
        place: place.clone(),
        origin: used.origin.clone(),
        kept,
        role: used.role,
    };
    items.insert(place, item);
    Ok(())
}

/// Whether the readers look at parts of it.
fn may_be_reduced(used: &Use) -> bool {
    matches!(used.role, Role::Program | Role::Debug)
}

/// Files, dumps and kernel symbols that the run would have used.
fn looked_for_in_vain(stages: &Stages<'_, '_>, uses: &[Use]) -> Vec<String> {
    let session = stages.session;
    let is_kernel = |pc: &Pc| match pc.target {
        Target::Dso(dso) => matches!(
            session.dsos.get(dso).kind,
            DsoKind::Kernel | DsoKind::Module
        ),
        _ => false,
    };
    let in_kernel = stages.collected.pcs.iter().any(is_kernel);
    // A dump that was mapped counts as a file, and may have been found elsewhere.
    let is_here = |name: &[u8]| uses.iter().any(|used| used.place == path_of(name));
    let missing = session.dsos.missing();
    let missing = missing.filter(|(dso, _)| !is_here(&dso.long_name));
    let files = missing.map(|(dso, trouble)| {
        let why = match trouble {
            FileTrouble::Missing => "not found",
            FileTrouble::NotElf => "no ELF file",
            FileTrouble::Changed => "only another build was found",
            FileTrouble::Ambiguous => "several files had this path, and nothing tells which it is",
            FileTrouble::Unreadable => "not readable by this user",
            FileTrouble::Pe => "of Windows' format, which pjit does not read",
        };
        format!("{}: {why}", String::from_utf8_lossy(&dso.long_name))
    });
    let dumps = session.jit.absent().iter().map(|absent| {
        let path = String::from_utf8_lossy(&absent.path);
        format!("{path}: {} (process {})", absent.why.word(), absent.pid)
    });
    let kernel = match session.dsos.kernel_state() {
        None | Some(KernelState::Found) => None,
        Some(KernelState::OtherBuild) => Some("kernel symbols: of another build"),
        Some(KernelState::Restricted) => Some("kernel symbols: only root may read them"),
        Some(KernelState::Missing) => Some("kernel symbols: not found"),
    };
    let kernel = kernel.filter(|_| in_kernel).map(str::to_owned);
    let mut all: Vec<String> = files.chain(dumps).chain(kernel).collect();
    all.sort();
    all.dedup();
    all
}
