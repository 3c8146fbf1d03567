//! The files of code that `eval` made, where the records of its lines tell them.
//!
//! In: the code of all dumps. Out: [`Evaled`]. V8 names such code without a file, `JS:*hot :8:13`, and what its text calls itself
//! (`//# sourceURL=`, as webpack and Vite write it) is in the records of lines alone. Interpreted code has no such records: it is of the
//! file that compiled code of its function tells, if it is the only one of that word and place. Made when somebody first asks, for
//! code that has such a name.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{JitCode, JitCodeId, JitIndex, JitObjectId};
use crate::ids::Idx;
use crate::runtimes::names::evaled_file;
use crate::runtimes::{Fileless, Tier};

/// Files by code.
#[derive(Debug, Default)]
pub(super) struct Evaled(FxHashMap<JitCodeId, Arc<str>>);

/// The code of all functions of one dump that have one word, line and column.
#[derive(Default)]
struct Namesakes {
    /// How many there are, as each is interpreted once.
    interpreted: usize,
    file: Option<Arc<str>>,
    are_several: bool,
    /// Code of which no record tells a file.
    untold: Vec<JitCodeId>,
}

impl Namesakes {
    fn meet(&mut self, file: &Arc<str>) {
        let known = self.file.get_or_insert_with(|| Arc::clone(file));
        self.are_several |= known != file;
    }

    /// The file that code without records must be of.
    fn only_file(&self) -> Option<&Arc<str>> {
        let is_sure = !self.are_several && self.interpreted <= 1;
        self.file.as_ref().filter(|_| is_sure)
    }
}

impl Evaled {
    pub(super) fn of(index: &JitIndex<'_>) -> Self {
        let mut of_code = FxHashMap::default();
        let mut files: FxHashMap<&[u8], Option<Arc<str>>> = FxHashMap::default();
        let mut all: FxHashMap<(JitObjectId, &[u8]), Namesakes> = FxHashMap::default();
        for id in (0..index.code_count()).map(JitCodeId::from_usize) {
            let code = index.code(id);
            let Some(place) = (code.producer().row().fileless)(code.name()) else {
                continue;
            };
            let tier = (code.producer().row().tier)(&String::from_utf8_lossy(code.name()));
            let key = (code.object(), &code.name()[place.word..]);
            let namesakes = all.entry(key).or_default();
            namesakes.interpreted += usize::from(tier == Tier::Interpreted);
            let file = told(code, &place, tier).and_then(|name| {
                let file = files.entry(name).or_insert_with(|| {
                    let url = std::str::from_utf8(name).ok()?;
                    evaled_file(url).map(Arc::from)
                });
                file.clone()
            });
            match file {
                Some(file) => {
                    namesakes.meet(&file);
                    of_code.insert(id, file);
                }
                None => namesakes.untold.push(id),
            }
        }
        for namesakes in all.into_values() {
            let Some(file) = namesakes.only_file() else {
                continue;
            };
            let untold = namesakes.untold.iter();
            of_code.extend(untold.map(|id| (*id, Arc::clone(file))));
        }
        Self(of_code)
    }

    pub(super) fn file(&self, id: JitCodeId) -> Option<&str> {
        self.0.get(&id).map(|file| &**file)
    }
}

/// What the lines of a function call its file: that where the function begins. Others may be of functions that were inlined, but not
/// where none are.
fn told<'a>(code: JitCode<'_, 'a>, place: &Fileless, tier: Tier) -> Option<&'a [u8]> {
    let lines = code.lines();
    let is_head = (place.line, place.column);
    let head = lines
        .iter()
        .find(|line| (line.line, line.column) == is_head);
    let inlines = !matches!(tier, Tier::Interpreted | Tier::Baseline);
    let first = || lines.iter().find(|line| line.line > 0);
    let found = head.or_else(|| first().filter(|_| !inlines));
    found.map(|line| line.file)
}
