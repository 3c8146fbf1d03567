//! The order of places for each kind of file, and that no name leads out of where it may.

use std::path::{Path, PathBuf};

use super::*;
use crate::build_id::BuildId;
use crate::input::{Door, FoundBy};

const ID: &str = "aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn id() -> BuildId {
    BuildId::new(&[0xaa; 20]).expect("a build ID")
}

/// What the places are called, with `FOLDER` for the folder.
fn names(folder: &Path, places: impl IntoIterator<Item = Place>) -> Vec<String> {
    let name = |place: Place| {
        let path = place.path().display().to_string();
        path.replace(&folder.display().to_string(), "FOLDER")
    };
    places.into_iter().map(name).collect()
}

/// A recording's folder with what stands for `/` in it, and a cache.
fn beside(folder: &Path) -> SearchPaths {
    std::fs::create_dir_all(folder.join("symfs")).expect("made");
    SearchPaths {
        recording_dir: Some(folder.to_owned()),
        buildid_dir: Some(PathBuf::from("/cache")),
        ..SearchPaths::default()
    }
}

/// The folder stands for `/`, and nothing else counts.
fn below(folder: &Path) -> SearchPaths {
    SearchPaths {
        symfs: Some(folder.to_owned()),
        ..beside(folder)
    }
}

#[test]
fn programs_are_looked_for_beside_the_recording_then_here_then_in_the_cache() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path();
    let of = |search: &SearchPaths, name: &[u8]| {
        names(folder, search.programs(name, [id()].into_iter()))
    };
    let cached = |cache: &str| {
        let link = format!("{cache}/.build-id/{ID}");
        [format!("{link}/elf"), link]
    };
    let expected = ["FOLDER/symfs/bin/app", "/bin/app"].map(str::to_owned);
    // One of two builds of one path is kept by its build ID.
    let kept = [cached("FOLDER/symfs/.debug")[0].clone()];
    let all = [&expected[..], &kept, &cached("/cache")].concat();
    assert_eq!(of(&beside(folder), b"/bin/app"), all);
    let all = [&["FOLDER/bin/app".to_owned()][..], &cached("FOLDER/.debug")].concat();
    assert_eq!(of(&below(folder), b"/bin/app"), all);
    // What had no name in any folder can only be given.
    let memory = of(&beside(folder), b"/memfd:x (deleted)");
    let expected = [
        "FOLDER/symfs/memfd:x",
        "FOLDER/symfs/memfd:x (deleted)",
        "/memfd:x (deleted)",
    ];
    assert_eq!(memory[..3], expected);
    let saved = names(folder, beside(folder).vdso(Some(id())));
    let cached = format!("/cache/.build-id/{ID}/vdso");
    assert_eq!(saved, ["FOLDER/symfs/[vdso]".to_owned(), cached]);
}

#[test]
fn debug_files_are_looked_for_by_link_by_path_and_by_build_id() {
    let dir = tempfile::tempdir().expect("a folder");
    let search = SearchPaths {
        recording_dir: None,
        ..beside(dir.path())
    };
    let of = DebugOf {
        name: b"/bin/app",
        build_id: Some(id()),
        link: Some((b"../up/app.dbg", 7)),
        found: Some(Path::new("/bin/app")),
        shares_path: false,
        is_proven: false,
    };
    let all = |of| -> Vec<DebugPlace> { search.debug_files(of).collect() };
    let places = |of| {
        let all = all(of).into_iter();
        names(dir.path(), all.map(|debug| debug.place))
    };
    let by_id = format!("/usr/lib/debug/.build-id/{ID}.debug");
    let cached = format!("/cache/.build-id/{ID}");
    let expected = [
        "/bin/app.dbg",
        "/bin/.debug/app.dbg",
        "/usr/lib/debug/bin/app.dbg",
        "/usr/lib/debug/bin/app.debug",
        "/usr/lib/debug/bin/app",
        &by_id,
        "/bin/.debug/app",
        &format!("{cached}/debug"),
        &format!("{cached}/elf"),
        &cached,
    ];
    assert_eq!(places(of), expected);
    let is_proven = |debug: &DebugPlace| debug.proof == Proof::BuildId(id());
    assert!(all(of).iter().all(is_proven));
    // The program itself was not found: its debug file may be in its place.
    let alone = DebugOf { found: None, ..of };
    assert_eq!(places(alone)[7], "/bin/app");
    // Without a build ID the link's checksum tells, of files of that name alone; without both nothing does.
    let linked = DebugOf {
        build_id: None,
        ..of
    };
    assert_eq!(places(linked), expected[..3]);
    assert!(
        all(linked)
            .iter()
            .all(|debug| debug.proof == Proof::Checksum(7))
    );
    let nothing = DebugOf {
        link: None,
        ..linked
    };
    assert!(all(nothing).is_empty());
    // Of several files of one path each is kept under its build ID.
    let shared = DebugOf {
        shares_path: true,
        ..of
    };
    assert!(
        all(shared)
            .iter()
            .all(|debug| debug.recorded == Path::new(&by_id))
    );
}

/// An ID is as true on this machine as it is below the folder. What was packed is all that there is of a bundle.
#[test]
fn a_proven_debug_file_of_this_machine_is_taken_with_symfs_too() {
    let dir = tempfile::tempdir().expect("a folder");
    let places = |search: &SearchPaths, is_proven| {
        let places = search.debug_files(DebugOf {
            name: b"/bin/app",
            build_id: Some(id()),
            link: None,
            found: None,
            shares_path: false,
            is_proven,
        });
        names(dir.path(), places.map(|debug| debug.place))
    };
    let search = SearchPaths {
        buildid_dir: Some("/cache".into()),
        ..below(dir.path())
    };
    let system = [
        format!("/usr/lib/debug/.build-id/{ID}.debug"),
        format!("/cache/.build-id/{ID}/debug"),
    ];
    let has = |places: &[String]| system.each_ref().map(|place| places.contains(place));
    assert_eq!(has(&places(&search, true)), [true; 2]);
    assert_eq!(has(&places(&search, false)), [false; 2]);
    // Files that lie side by side have no folders.
    let flat = SearchPaths {
        flat_symfs: vec![dir.path().to_owned()],
        ..search
    };
    let first = &places(&flat, false)[0];
    assert_eq!(first, "FOLDER/app.debug");
}

#[test]
fn what_debug_files_refer_to_is_looked_for_beside_them() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path();
    let of_dwz = |search: &SearchPaths, name: &str| {
        let debug = folder.join("d/app.debug");
        names(folder, search.shared_debug(name.as_bytes(), &id(), &debug))
    };
    let here = SearchPaths::default();
    let by_id = format!("/usr/lib/debug/.build-id/{ID}.debug");
    let expected = ["FOLDER/d/x.dwz", "/usr/lib/debug/.dwz/x.dwz"];
    let all = of_dwz(&here, "x.dwz");
    assert_eq!(all[..2], expected);
    assert_eq!(all.last(), Some(&by_id));
    let inside = "FOLDER/d/x.dwz".to_owned();
    assert!(of_dwz(&below(folder), "x.dwz").contains(&inside));
    let door = Door::recorded("/bin/app");
    let of = [(&door, Path::new("/bin/app"))];
    let split = here.split_files(Path::new("/build/a.dwo"), of.into_iter());
    let split = split.into_iter().map(|(place, _)| place);
    assert_eq!(names(folder, split), ["/build/a.dwo", "/bin/a.dwo"]);
    let (package, recorded) = split_package(&door, Path::new("/bin/app")).expect("a name");
    assert_eq!(package.path(), Path::new("/bin/app.dwp"));
    assert_eq!(recorded, package.path());
}

#[test]
fn the_kernels_symbols_are_looked_for_beside_the_recording_first() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path();
    let search = beside(folder);
    let listed = names(folder, search.all_kallsyms(Some(&id())));
    let hex = id().to_string();
    let expected = [
        "FOLDER/kallsyms".to_owned(),
        "FOLDER/kallsyms.gz".to_owned(),
        format!("/cache/[kernel.kallsyms]/{hex}/kallsyms"),
        format!("/cache/.build-id/{ID}/kallsyms"),
    ];
    assert_eq!(listed, expected);
    let fetching = SearchPaths {
        debuginfod: Some("/fetched".into()),
        ..search.clone()
    };
    let by_id = names(folder, fetching.all_vmlinux(None, Some(&id())));
    assert_eq!(by_id.last(), Some(&format!("/fetched/{hex}/debuginfo")));
    let of = |release: Option<&str>| names(folder, search.all_vmlinux(release, None));
    let expected = [
        "/boot/vmlinux-6.1",
        "/usr/lib/debug/boot/vmlinux-6.1",
        "/lib/modules/6.1/build/vmlinux",
        "/usr/lib/debug/lib/modules/6.1/vmlinux",
        "/usr/lib/debug/boot/vmlinux-6.1.debug",
    ];
    assert_eq!(of(Some("6.1")), expected);
    for release in [None, Some(".."), Some("a/../../etc")] {
        assert!(of(release).is_empty(), "{release:?}");
    }
    let ignored = SearchPaths {
        ignore_vmlinux: true,
        ..search.clone()
    };
    assert!(ignored.all_vmlinux(Some("6.1"), Some(&id())).is_empty());
    let module = |name: &str| names(folder, search.modules(Path::new(name)));
    assert_eq!(module("/m/x.ko"), ["FOLDER/symfs/m/x.ko", "/m/x.ko"]);
    assert!(module("[x]").is_empty());
}

#[test]
fn webassembly_is_looked_for_where_the_user_says_then_beside_then_by_the_command() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path();
    std::fs::write(folder.join("b.wasm"), "").expect("written");
    let command = ["run", "--module=./x/a.cwasm", "../up.wat", "/abs/c.wasm"];
    let search = SearchPaths {
        recording_dir: Some(folder.to_owned()),
        wasm: vec!["/given/a.wasm".into(), folder.join("./b.wasm")],
        ..SearchPaths::default()
    };
    let all = search.webassembly(WasmKind::Module, &command.map(str::to_owned));
    let is_named: Vec<bool> = all.iter().map(|(_, is_named)| *is_named).collect();
    let all = names(folder, all.into_iter().map(|(place, _)| place));
    let expected = [
        "/given/a.wasm",
        "FOLDER/./b.wasm",
        "FOLDER/./x/a.wasm",
        "./x/a.wasm",
        "../up.wasm",
        "/abs/c.wasm",
    ];
    assert_eq!(all, expected, "each once");
    assert_eq!(is_named, [true, true, false, false, false, false]);
    assert!(WasmKind::Module.has(b"a.wasm"));
    assert!(!WasmKind::Module.has(b"a.cwasm") && !WasmKind::Module.has(b"wasm"));
}

#[test]
fn source_maps_are_looked_for_where_the_user_says_first_and_sources_last() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path();
    let scripts = ScriptPlaces {
        folders: vec!["/given".into()],
        roots: vec![PathBuf::new()],
    };
    let of = |url| {
        let script = Path::new("/app/a.js");
        let (places, beside) = scripts.maps(script, Some(script), url).expect("a name");
        assert_eq!(beside, Path::new("/app/a.js.map"));
        names(folder, places)
    };
    let plain = ["/given/a.js.map", "/app/a.js.map"];
    assert_eq!(of(Some("m/x.map")), [plain[0], "/app/m/x.map", plain[1]]);
    for elsewhere in [None, Some("/etc/x.map"), Some("file:///etc/x.map")] {
        assert_eq!(of(elsewhere), plain, "{elsewhere:?}");
    }
    let of_module = map_of_module(Path::new("/w/a.wasm"), "../../etc/a.map");
    assert_eq!(of_module.expect("a name").path(), Path::new("/w/a.map"));

    let sources = SourcePaths {
        beside: None,
        roots: vec!["/given".into()],
        prefix: Some("/prefix".into()),
        strip: 1,
        symfs: Some(folder.to_owned()),
        recorded: None,
        debuginfod: None,
    };
    let all: Vec<_> = sources.candidates(Path::new("/build/a.c"), None).collect();
    let is_path = |(_, by): &(Place, FoundBy)| *by == FoundBy::Path;
    assert_eq!(all.iter().position(is_path), Some(2), "as recorded");
    let all = names(folder, all.into_iter().map(|(place, _)| place));
    let expected = [
        "FOLDER/build/a.c",
        "/prefix/a.c",
        "/build/a.c",
        "/given/build/a.c",
        "/given/a.c",
    ];
    assert_eq!(all, expected);
}

/// What a recording, a program, a command line or a script calls a file never leads out of the folder in which it is looked for.
#[test]
#[cfg(target_os = "linux")]
fn no_name_leads_out_of_its_folder() {
    let dir = tempfile::tempdir().expect("a folder");
    let secret = dir.path().join("secret");
    std::fs::write(&secret, "x").expect("written");
    let folder = dir.path().join("folder");
    let search = below(&folder);
    for link in ["out", "build"] {
        std::os::unix::fs::symlink("..", folder.join(link)).expect("linked");
    }
    std::os::unix::fs::symlink("../secret", folder.join("secret.wasm")).expect("linked");
    let jit = JitPlaces::new(JitSearch {
        symfs: Some(folder.clone()),
        recording_dir: folder.clone(),
        cwd: folder.clone(),
        ..JitSearch::default()
    });
    let scripts = ScriptPlaces {
        roots: search.roots(),
        ..ScriptPlaces::default()
    };
    let sources = SourcePaths {
        roots: vec![folder.clone()],
        prefix: Some(folder.clone()),
        symfs: Some(folder.clone()),
        ..SourcePaths::default()
    };
    let script = folder.join("a.js");
    let mut seen = 0;
    let absolute = dir.path().join("folder/../secret");
    let names = [
        "../secret",
        "/../secret",
        "/out/secret",
        "out/secret",
        "/build/../secret",
    ];
    for name in names.iter().copied().map(Path::new).chain([&*absolute]) {
        let bytes = name.as_os_str().as_encoded_bytes();
        let debug = search.debug_files(DebugOf {
            name: bytes,
            build_id: Some(id()),
            link: Some((bytes, 0)),
            found: None,
            shares_path: false,
            is_proven: false,
        });
        let (maps, _) = scripts
            .maps(name, Some(&script), name.to_str())
            .expect("it has a last part");
        let words = [format!("{}.wasm", name.display())];
        let command = if name.is_absolute() { &words[..] } else { &[] };
        let all = search
            .programs(bytes, std::iter::empty())
            .chain(debug.map(|debug| debug.place))
            .chain(search.shared_debug(bytes, &id(), &folder.join("a.debug")))
            .chain(search.modules(name))
            .chain(search.all_vmlinux(name.to_str(), None))
            .chain(jit.dump_candidates(bytes, 1))
            .chain(maps)
            .chain(scripts.scripts(name))
            .chain(
                search
                    .webassembly(WasmKind::Module, command)
                    .into_iter()
                    .map(|(place, _)| place),
            )
            .chain(sources.candidates(name, None).map(|(place, _)| place))
            // As recorded: by its checksum or its owner, see `input/source.rs`.
            .filter(|place| place.path() != name);
        for place in all {
            seen += 1;
            let shown = place.path().to_owned();
            let opened = place.into_door().map(|door| door.open().is_ok());
            assert_ne!(
                opened,
                Some(true),
                "{} by {}",
                shown.display(),
                name.display()
            );
        }
    }
    assert!(seen > 100, "places are not made any more: {seen}");
}

/// What somebody fetched from a server goes last, and by build ID alone.
#[test]
fn the_cache_of_debuginfods_client_is_looked_at_last() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path();
    for search in [beside(folder), below(folder)] {
        let without = search.clone();
        let search = SearchPaths {
            debuginfod: Some(folder.join("fetched")),
            ..search
        };
        let fetched = |name: &str| format!("FOLDER/fetched/{}/{name}", id());
        let programs = |search: &SearchPaths, ids: &[BuildId]| {
            names(folder, search.programs(b"/bin/app", ids.iter().copied()))
        };
        let mut wanted = programs(&without, &[id()]);
        wanted.push(fetched("executable"));
        assert_eq!(programs(&search, &[id()]), wanted);
        assert_eq!(programs(&search, &[]), programs(&without, &[]));
        let debug = |search: &SearchPaths, build_id| {
            let of = DebugOf {
                name: b"/bin/app",
                build_id,
                link: None,
                found: None,
                shares_path: false,
                is_proven: false,
            };
            let places = search.debug_files(of);
            names(folder, places.map(|debug| debug.place))
        };
        let mut wanted = debug(&without, Some(id()));
        wanted.push(fetched("debuginfo"));
        assert_eq!(debug(&search, Some(id())), wanted);
        assert_eq!(debug(&search, None), debug(&without, None));
    }
    let sources = SourcePaths {
        debuginfod: Some(folder.join("fetched")),
        ..SourcePaths::default()
    };
    let found = |build| {
        let places = sources.candidates(Path::new("/usr/src/x.c"), build);
        names(folder, places.map(|(place, _)| place))
    };
    let all = found(Some(id()));
    assert_eq!(all.len(), 3);
    assert!(all[2].ends_with("/source##usr##src##x.c"), "{all:?}");
    assert_eq!(found(None), all[..1]);
}
