//! The files that code lies in, each a library and a resource of the same number.

use super::super::columns::{list, text};
use super::super::text::harmless;
use crate::address::{Avma, FileOffset};
use crate::ids::{IndexVec, Spare, index_vec, numbers};
use crate::profile::{Object, ObjectId, Profile};

numbers! {
    /// A library, and the resource for it.
    pub(super) struct LibId(Spare);
}

/// Libraries in the order in which frames are met.
pub(super) struct Libs<'p> {
    profile: &'p Profile,
    all: IndexVec<LibId, ObjectId>,
    numbers: IndexVec<ObjectId, Option<LibId>>,
}

impl<'p> Libs<'p> {
    pub(super) fn new(profile: &'p Profile) -> Self {
        Self {
            profile,
            all: IndexVec::new(),
            numbers: index_vec![None; profile.objects.len()],
        }
    }

    /// The number of an object; none for what stands for no code.
    pub(super) fn number(&mut self, id: ObjectId) -> Option<LibId> {
        let number = &mut self.numbers[id];
        if number.is_none() && !self.profile[id].is_label() {
            *number = Some(self.all.push(id));
        }
        *number
    }

    /// Names by number.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        let names = self
            .all
            .iter()
            .map(|id| harmless(&self.profile[*id].short_name).into_owned());
        names.collect::<Vec<_>>().into_iter()
    }

    /// The address in a library of (address, address in the object's space), if it is known where the library begins.
    pub(super) fn address(
        &self,
        id: ObjectId,
        (avma, of_object): (Avma, FileOffset),
    ) -> Option<u64> {
        let object = &self.profile[id];
        if object.is_label() {
            return None;
        }
        if object.is_kernel {
            let start = object.ranges.first()?.range.start.0;
            return avma
                .0
                .checked_sub(start)
                .filter(|address| *address < LARGEST);
        }
        Some(of_object.0).filter(|address| *address < LARGEST)
    }

    pub(super) fn push(&self, json: &mut String) {
        let arch = self.arch();
        list(json, &self.all, |id, json| {
            push_lib(&self.profile[*id], &arch, json)
        });
    }

    fn arch(&self) -> String {
        let header = self.profile.recording.header.iter();
        let arch = header
            .filter_map(|line| line.strip_prefix("# arch : "))
            .next();
        harmless(arch.unwrap_or_default()).into_owned()
    }
}

/// Numbers of JavaScript are whole up to here.
const LARGEST: u64 = 1 << 53;

fn push_lib(object: &Object, arch: &str, json: &mut String) {
    let code_id: Option<String> = object.build_id.map(|id| {
        id.as_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    });
    let (name, path) = (harmless(&object.short_name), harmless(&object.long_name));
    let fields = [
        ("arch", arch),
        ("name", &name),
        ("path", &path),
        ("debugName", &name),
        ("debugPath", &path),
        ("breakpadId", &breakpad_id(object)),
    ];
    json.push('{');
    for (key, value) in fields {
        text(key, json);
        json.push(':');
        text(value, json);
        json.push(',');
    }
    json.push_str("\"codeId\":");
    match code_id {
        Some(id) => text(&id, json),
        None => json.push_str("null"),
    }
    json.push('}');
}

/// The first 16 bytes of a build ID as a GUID, of which three fields have their bytes the other way round, and an age.
fn breakpad_id(object: &Object) -> String {
    let mut bytes = [0_u8; 16];
    if let Some(id) = object.build_id {
        let taken = id.as_bytes().iter().zip(&mut bytes);
        taken.for_each(|(from, to)| *to = *from);
    }
    bytes[0..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    hex + "0"
}
