//! Split DWARF: what a unit left behind in a `.dwo` file, or in the `.dwp` file that packs those of a program.
//!
//! In: a unit that may be a skeleton (`-gsplit-dwarf`), and the DSO table, which opens files. Out: the unit with the
//! functions in it. Lines and addresses stay with the skeleton (DWARF 5, section 3.1.3; before it GNU's
//! `DW_AT_GNU_dwo_name`).

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use gimli::{
    AttributeValue, DwarfPackage, DwoId, LittleEndian, SectionId, UnitType, constants as dw,
};

use super::dwarf::{DebugInfo, Reader, Unit};
use crate::dso::elf::ElfFile;
use crate::dso::{DsoId, DsoTable};
use crate::find::path_of;

/// The files that a DSO's skeletons refer to.
pub(super) struct SplitFiles<'t, 'a> {
    dsos: &'t DsoTable<'a>,
    dso: DsoId,
    package: OnceLock<Option<DwarfPackage<Reader<'a>>>>,
    missing: AtomicBool,
}

/// A file that describes functions of a DSO, and that is not there. Looks at few units: compilers split all of a program.
#[must_use]
pub fn missing_split_file<'a>(dsos: &DsoTable<'a>, dso: DsoId) -> Option<PathBuf> {
    /// Units that are looked at.
    const FEW: usize = 64;
    // Whoever splits puts addresses there.
    let elf = dsos.debug(dso);
    let splits =
        |of: &&ElfFile<'_>| !of.is_big_endian() && of.debug_section(".debug_addr").is_some();
    let info = DebugInfo::of_elf(elf.filter(splits)?, false, None)?;
    let files = SplitFiles::new(dsos, dso);
    let mut units = info.units().take(FEW);
    units.find_map(|unit| {
        let link = Link::of(&info, &unit)?;
        files.of(&info, &unit).is_none().then_some(link.path)
    })
}

/// A unit's better half.
pub(super) struct Split<'a> {
    pub(super) info: DebugInfo<'a>,
    pub(super) unit: Unit<'a>,
}

/// What a skeleton says of it.
struct Link {
    id: DwoId,
    path: PathBuf,
}

impl<'t, 'a> SplitFiles<'t, 'a> {
    pub(super) fn new(dsos: &'t DsoTable<'a>, dso: DsoId) -> Self {
        Self {
            dsos,
            dso,
            package: OnceLock::new(),
            missing: AtomicBool::new(false),
        }
    }

    /// The unit that a skeleton stands for; `None` for other units, and where its file is not found.
    pub(super) fn of<'d>(&self, main: &DebugInfo<'d>, skeleton: &Unit<'d>) -> Option<Split<'d>>
    where
        'a: 'd,
    {
        let link = Link::of(main, skeleton)?;
        let packed = || {
            let package = self.package.get_or_init(|| self.open_package());
            let package: &DwarfPackage<Reader<'d>> = package.as_ref()?;
            let dwarf = package.find_cu(link.id, &main.dwarf);
            find_unit(dwarf.ok()??, link.id, skeleton)
        };
        // Only the id tells that a file is the one: the name may be that of any file of this machine.
        let single = |elf: &ElfFile<'a>| {
            let section = |id: SectionId| Ok::<_, gimli::Error>(section_of(elf, id));
            let mut dwarf: gimli::Dwarf<Reader<'d>> = gimli::Dwarf::load(section).ok()?;
            dwarf.make_dwo(&main.dwarf);
            find_unit(dwarf, link.id, skeleton)
        };
        let single = self.dsos.split_file(self.dso, &link.path, single);
        let found = single.or_else(packed);
        if found.is_none() && !self.missing.swap(true, Ordering::Relaxed) {
            self.dsos.report_missing_split(self.dso);
        }
        found
    }

    fn open_package(&self) -> Option<DwarfPackage<Reader<'a>>> {
        self.dsos.split_package(self.dso, |elf| {
            let section = |id: SectionId| Ok::<_, gimli::Error>(section_of(elf, id));
            DwarfPackage::load(section, Reader::new(&[], LittleEndian)).ok()
        })
    }
}

/// A section by its name in `.dwo` and `.dwp` files.
fn section_of<'a>(elf: &ElfFile<'a>, id: SectionId) -> Reader<'a> {
    let data = id.dwo_name().and_then(|name| elf.debug_section(name));
    Reader::new(data.unwrap_or_default(), LittleEndian)
}

fn find_unit<'a>(
    dwarf: gimli::Dwarf<Reader<'a>>,
    id: DwoId,
    skeleton: &Unit<'a>,
) -> Option<Split<'a>> {
    let info = DebugInfo::split(dwarf);
    let mut unit = info.split_unit(id)?;
    unit.copy_relocated_attributes(skeleton);
    Some(Split { info, unit })
}

impl Link {
    fn of<'a>(info: &DebugInfo<'a>, unit: &Unit<'a>) -> Option<Self> {
        let mut id = match unit.header.type_() {
            UnitType::Skeleton(id) => Some(id),
            _ => None,
        };
        let (mut name, mut directory) = (None, None);
        let (mut entries, specs) = unit.root()?;
        for spec in specs {
            let attribute = entries.read_attribute(*spec).ok()?;
            let text = || {
                let text = info.dwarf.attr_string(unit, attribute.value()).ok()?;
                info.note_text(text.slice());
                Some(path_of(text.slice()).to_owned())
            };
            match (attribute.name(), attribute.value()) {
                (dw::DW_AT_dwo_name | dw::DW_AT_GNU_dwo_name, _) => name = text(),
                (dw::DW_AT_comp_dir, _) => directory = text(),
                (dw::DW_AT_GNU_dwo_id, AttributeValue::DwoId(found)) => id = Some(found),
                _ => {}
            }
        }
        let path = directory.unwrap_or_default().join(name?);
        Some(Self { id: id?, path })
    }
}
