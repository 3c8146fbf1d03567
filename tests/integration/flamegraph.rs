//! Flame graphs: what is in the pictures, read by somebody else's XML reader, against inferno's picture of the folded stacks.

use std::collections::BTreeMap;
use std::fs;

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::live::total;
use crate::recording::{CONTEXT_USER, Recording, Sample, Stacks};
use crate::support::{SAMPLES, pjit, sample, stdout_of, twice_of};

/// Options of a picture that has the frames of the folded stacks, by their names.
const WHOLE: [&str; 5] = [
    "--tiers",
    "--with-runtime",
    "--with-recursion",
    "--color-by",
    "kind",
];

/// A frame of a picture: name, position and width in weight, and row.
type Frame = (String, u64, u64, i64);

#[test]
fn frames_are_those_of_inferno_on_the_folded_stacks() {
    for name in SAMPLES {
        for options in [&[][..], &["--reverse"], &["--inverted"], &["--tid"]] {
            let ours = stdout_of(
                &[&["flamegraph", "--percent-limit", "0"], options, &WHOLE].concat(),
                name,
            );
            let mut inferno = inferno::flamegraph::Options::default();
            inferno.min_width = 0.0;
            inferno.reverse_stack_order = options.contains(&"--reverse");
            if options.contains(&"--inverted") {
                inferno.direction = inferno::flamegraph::Direction::Inverted;
            }
            let mut fold = vec!["fold"];
            fold.extend(options.iter().filter(|option| **option == "--tid"));
            let fold = stdout_of(&fold, name);
            let mut theirs = Vec::new();
            inferno::flamegraph::from_lines(&mut inferno, fold.lines(), &mut theirs)
                .expect("it draws");
            let theirs = String::from_utf8(theirs).expect("text");
            let (ours, theirs) = (frames(&ours), frames(&theirs));
            assert!(ours.len() > 10, "{name}");
            assert_eq!(joined(ours), joined(theirs), "{name} {options:?}");
        }
    }
}

/// What the frames of one name in a row are together: weight, how many, and where the first begins.
type Joined = BTreeMap<(i64, String), (u64, usize, u64)>;

/// inferno draws a frame twice where a function's own samples and its callees' have a neighbour between them whose name goes
/// on behind the function's. So the names' weights by row are compared, and where they begin.
fn joined(frames: Vec<Frame>) -> Joined {
    let mut rows = Joined::new();
    for (name, x, width, row) in frames {
        let sum = rows.entry((row, name)).or_insert((0, 0, x));
        *sum = (sum.0 + width, sum.1 + 1, sum.2.min(x));
    }
    rows
}

/// The frames of a picture; fails the test unless it is well-formed.
fn frames(svg: &str) -> Vec<Frame> {
    let mut reader = Reader::from_str(svg);
    let (mut frames, mut title, mut is_title) = (Vec::new(), String::new(), false);
    loop {
        match reader.read_event().expect("well-formed") {
            Event::Eof => break,
            Event::Start(element) => is_title = element.name().as_ref() == b"title",
            Event::End(_) => is_title = false,
            Event::Text(text) if is_title => title.push_str(&text.decode().expect("text")),
            Event::GeneralRef(entity) if is_title => {
                title.push('&');
                title.push_str(&entity.decode().expect("text"));
                title.push(';');
            }
            Event::Empty(element) if element.name().as_ref() == b"rect" => {
                let value = |name: &str| -> Option<u64> {
                    let attribute = element.try_get_attribute(name).expect("an attribute")?;
                    String::from_utf8_lossy(&attribute.value).parse().ok()
                };
                if let (Some(x), Some(w), Some(y)) = (value("fg:x"), value("fg:w"), value("y")) {
                    let name = title.rsplit_once(" (").map_or("", |(name, _)| name);
                    frames.push((name.to_owned(), x, w, y as i64));
                }
                title.clear();
            }
            _ => {}
        }
    }
    let (low, high) = (
        frames.iter().map(|f| f.3).min().unwrap_or(0),
        frames.iter().map(|f| f.3).max().unwrap_or(0),
    );
    let root = frames.iter().find(|f| f.0 == "all").map_or(0, |f| f.3);
    // Rows from the root on.
    for frame in &mut frames {
        frame.3 = (frame.3 - root).abs() / 16;
    }
    assert!(root == low || root == high);
    frames
}

/// Names are clean, tiers are one frame, and what is around packages is another; the recording's own names are in the titles.
#[test]
fn frames_have_clean_names_and_the_runtime_is_one_frame() {
    let svg = stdout_of(&["flamegraph", "--percent-limit", "0"], "node");
    let all = frames(&svg);
    let has = |name: &str| all.iter().any(|frame| frame.0 == name);
    assert!(has("runtime") && has("fibonacci hot.js:5"), "{all:?}");
    assert!(!all.iter().any(|frame| frame.0.starts_with("JS:")));
    let told = title(&svg, "matMul hot.js:9");
    assert!(told.contains("JS:*matMul /"), "{told}");
    // What weighs what does not change by it.
    let whole = [&["flamegraph", "--percent-limit", "0"][..], &WHOLE].concat();
    let whole = frames(&stdout_of(&whole, "node"));
    let of_row = |frames: &[Frame], row: i64| -> u64 {
        let in_row = frames.iter().filter(|frame| frame.3 == row);
        in_row.map(|frame| frame.2).sum()
    };
    for row in 0..2 {
        assert_eq!(of_row(&all, row), of_row(&whole, row), "row {row}");
    }
    let rows = |frames: &[Frame]| frames.iter().map(|frame| frame.3).max();
    assert!(rows(&all) < rows(&whole), "{:?}", rows(&all));
    for (by, text) in [("package", "hot.js ❨own❩"), ("activity", "optimised code")] {
        let svg = stdout_of(&["flamegraph", "--color-by", by], "node");
        assert!(svg.contains(text), "{by}");
    }
}

/// A team's own names of packages are those of pictures, too.
#[test]
fn colours_tell_packages_that_were_named() {
    let named = ["--package", "numbers=^fibonacci", "--color-by", "package"];
    let svg = stdout_of(&[&["flamegraph"][..], &named].concat(), "node");
    let told = title(&svg, "fibonacci hot.js:5");
    assert!(told.contains(" · numbers · "), "{told}");
    assert!(svg.contains("■</tspan> numbers"), "in the legend");
}

/// A picture that is taller than a screen has its root on top, and one frame for many that recur.
#[test]
fn tall_pictures_begin_at_the_root_and_fold_recursion() {
    let tall = ["flamegraph", "--percent-limit", "0", "--height", "80"];
    let svg = stdout_of(&tall, "native");
    let has_folded = |svg: &str| frames(svg).iter().any(|frame| frame.0.starts_with("… "));
    assert!(has_folded(&svg), "{svg}");
    let y = |svg: &str, name: &str| -> i64 {
        let at = svg.find(&format!("<title>{name}")).expect("a frame");
        let y = svg[at..].split(" y=\"").nth(1).expect("a place");
        y.split('"')
            .next()
            .expect("its end")
            .parse()
            .expect("a number")
    };
    let is_upright = |svg: &str| y(svg, "all") > y(svg, "_start");
    assert!(!is_upright(&svg));
    let with = |option: &str| stdout_of(&[&tall[..], &[option]].concat(), "native");
    assert!(is_upright(&with("--upright")));
    assert!(!has_folded(&with("--with-recursion")));
    let low = stdout_of(&["flamegraph", "--percent-limit", "0"], "native");
    assert!(is_upright(&low) && !has_folded(&low));
}

#[test]
fn left_out_frames_are_drawn_and_counted() {
    for name in SAMPLES {
        let all = frames(&stdout_of(&["flamegraph", "--percent-limit", "0"], name));
        let some = frames(&stdout_of(&["flamegraph", "--percent-limit", "20"], name));
        assert!(some.len() < all.len(), "{name}");
        assert!(some.iter().any(|frame| frame.0 == "[…]"), "{name}");
        // With what is left out, the comms weigh as much as before.
        for row in 0..2 {
            let weight = |frames: &[Frame]| -> u64 {
                let in_row = frames.iter().filter(|frame| frame.3 == row);
                in_row.map(|frame| frame.2).sum()
            };
            assert_eq!(weight(&all), weight(&some), "{name} row {row}");
        }
    }
}

#[test]
fn pictures_do_not_depend_on_threads_and_are_the_same_each_time() {
    for name in SAMPLES {
        let first = stdout_of(&["flamegraph"], name);
        for threads in ["1", "2", "5"] {
            let again = stdout_of(&["flamegraph", "-j", threads], name);
            assert!(first == again, "{name} -j {threads}");
        }
    }
}

#[test]
fn the_head_tells_what_is_shown_and_how_good_it_is() {
    let svg = stdout_of(&["flamegraph", "--percent-limit", "2"], "wasmtime");
    for text in [
        "Flame graph: ",
        "78 samples, 788 ms of cpu-clock:pppH",
        "left out below 2.000%: ",
        "100.00% in complete stacks",
        "JIT: jit-10150.dump: 18 functions",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    let svg = stdout_of(
        &[
            "flamegraph",
            "--title",
            "a <b> & c",
            "--subtitle",
            "\"d\"",
            "--notes=--x--",
        ],
        "wasmtime",
    );
    frames(&svg);
    assert!(svg.contains(">a &lt;b&gt; &amp; c<") && svg.contains(">&quot;d&quot;"));
}

#[test]
fn files_appear_whole_and_the_last_line_tells_what_is_in_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let picture = folder.path().join("x.svg");
    let path = picture.to_str().expect("text");
    let run = |output: &str| {
        pjit()
            .args(["flamegraph", "--symfs"])
            .arg(sample("native", "symfs"))
            .arg(sample("native", "perf.data"))
            .args(["-o", output])
            .output()
            .expect("the binary can be run")
    };
    let output = run(path);
    assert!(output.status.success() && output.stdout.is_empty());
    let line = String::from_utf8(output.stderr).expect("text");
    let expected =
        "x.svg: 177 samples, 1.79 s of cpu-clock:pppH, 381 of 381 frames drawn; Quality: 100.00%";
    assert!(line.contains(expected), "{line}");
    frames(&fs::read_to_string(&picture).expect("a picture"));
    assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1);
    let output = run("-");
    assert!(output.stdout.starts_with(b"<?xml") && output.stderr.is_empty());
    let output = run("x.png");
    assert_eq!(output.status.code(), Some(2));
}

/// The page is written, and the browser that was named gets its path as one argument.
#[test]
fn the_browser_gets_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let script = "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" > \"$(dirname \"$0\")/got\"\n";
    let program = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::write(path(name), text).expect("written");
        let rights = fs::Permissions::from_mode(0o755);
        fs::set_permissions(path(name), rights).expect("set");
        path(name).to_str().expect("text").to_owned()
    };
    let show = |browser: &str, options: &[&str]| {
        let output = pjit()
            .args(["flamegraph", "--open", "--symfs"])
            .arg(sample("native", "symfs"))
            .arg(sample("native", "perf.data"))
            .args(options)
            .env("BROWSER", browser)
            .env("PATH", folder.path())
            .env("TMPDIR", folder.path())
            .output()
            .expect("the binary can be run");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    // `dirname` is a program.
    let script = script.replace("$(dirname \"$0\")", folder.path().to_str().expect("text"));
    let fox = program("fox", &script);
    let (status, said) = show(&fox, &[]);
    assert_eq!(status, Some(0), "{said}");
    let got = fs::read_to_string(path("got")).expect("it ran");
    let (count, page) = got.trim_end().split_once('\n').expect("two lines");
    assert_eq!(count, "1");
    let page = fs::read(page).expect("the page");
    assert!(page.starts_with(b"<!DOCTYPE html>"));
    let picture = path("a b.svg");
    let picture = picture.to_str().expect("text");
    let (status, said) = show(&format!("{fox} --new %s"), &["-o", picture]);
    assert_eq!(status, Some(0), "{said}");
    let got = fs::read_to_string(path("got")).expect("it ran");
    assert_eq!(got, format!("2\n--new\n{picture}\n"));
    let fails = program("fails", "#!/bin/sh\nexit 3\n");
    let (status, said) = show(&fails, &[]);
    assert!(
        said.contains("could not show it") && said.contains("the page is"),
        "{said}"
    );
    assert_eq!(status, Some(1));
    let (status, said) = show("", &[]);
    assert!(said.contains("--open: no browser here"), "{said}");
    assert_eq!(status, Some(1));
    let (status, _) = show(&fox, &["-o", "-"]);
    assert_eq!(status, Some(2));
}

#[test]
fn an_event_without_samples_or_of_another_recording_is_an_error() {
    let output = crate::support::run(&["flamegraph", "--event", "page-faults"], "native");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("it has cpu-clock:pppH"), "{text}");
}

/// Red and blue of a frame.
fn color(svg: &str, name: &str) -> (u8, u8) {
    let title = svg.find(&format!("<title>{name}")).expect("a frame");
    let fill = svg[title..].find("fill=\"rgb(").expect("a colour") + title + 10;
    let numbers = svg[fill..].split(')').next().expect("an end");
    let numbers: Vec<u8> = numbers
        .split(',')
        .filter_map(|part| part.parse().ok())
        .collect();
    (numbers[0], numbers[2])
}

#[test]
fn a_difference_can_be_drawn_in_other_ways() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, lines: &str| {
        let path = folder.path().join(name);
        fs::write(&path, lines).expect("written");
        path.to_str().expect("text").to_owned()
    };
    let fold = stdout_of(&["fold"], "node");
    let without: Vec<&str> = fold
        .lines()
        .filter(|line| !line.contains("matMul"))
        .collect();
    let less = write(
        "less.folded",
        &(without.join("\n") + "\nnode;_start;gone 90000000\n"),
    );
    let draw = |base: &str, options: &[&str]| {
        let all = ["flamegraph", "--percent-limit", "0", "--diff", base];
        stdout_of(&[&all[..], options].concat(), "node")
    };
    // Folded stacks are one run that nobody can test.
    let plain = draw(&less, &["--negate"]);
    assert_eq!(color(&plain, "JS:*matMul "), (224, 224));
    assert!(plain.contains("not tested: folded stacks"));

    // The run before has the shape of its own picture, and tells what is gone.
    let before = draw(&less, &["--shape", "before"]);
    assert!(title(&before, "gone").contains(", vanished"), "{before}");
    assert!(!before.contains("<title>JS:*matMul "));
    let widest = |svg: &str| frames(svg).iter().map(|frame| frame.2).max();
    let all = total(&without.join("\n")) + 90_000_000;
    // Both are drawn as runs of one length.
    let drawn = widest(&before).expect("frames");
    assert!(drawn.abs_diff(total(&fold)) < 10, "{drawn} of {all}");
    assert_eq!(widest(&draw(&less, &[])), Some(total(&fold)));

    // Twice as much of everything is the same in shares.
    let twice = write("twice.folded", &twice_of(&fold));
    let told = |options: &[&str]| title(&draw(&twice, options), "all");
    assert!(told(&[]).contains(", 1.00 times"), "{}", told(&[]));
    let absolute = told(&["--absolute"]);
    assert!(absolute.contains(", 0.50 times"), "{absolute}");
    // A picture in which all is as before has to say what was taken out.
    let factor = "what was before is times 0.50, the common factor";
    assert!(draw(&twice, &[]).contains(factor));
    assert!(!draw(&twice, &["--absolute"]).contains("common factor"));

    // A run without any weight has no shape.
    let nothing = write("nothing.folded", "node;_start;gone 0\n");
    let options = ["flamegraph", "--diff", &nothing, "--shape", "before"];
    let output = crate::support::run(&options, "node");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("all periods are 0"), "{said}");

    for wrong in [
        &["flamegraph", "--shape", "before"][..],
        &["flamegraph", "--absolute"],
        &["flamegraph", "--negate"],
        &["flamegraph", "--diff", &less, "--shape", "both"],
    ] {
        let status = crate::support::run(wrong, "node").status.code();
        assert_eq!(status, Some(2), "{wrong:?}");
    }
}

#[test]
fn a_difference_has_the_new_shape_and_the_colours_of_the_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().join("base.folded");
    let fold = stdout_of(&["fold"], "node");
    let kept: Vec<&str> = fold
        .lines()
        .filter(|line| !line.contains("matMul"))
        .collect();
    fs::write(&base, kept.join("\n") + "\nnode;_start;gone 90000000\n").expect("written");
    let base = base.to_str().expect("text");
    let svg = stdout_of(
        &["flamegraph", "--percent-limit", "0", "--diff", base],
        "node",
    );
    let plain = [&["flamegraph", "--percent-limit", "0"][..], &WHOLE].concat();
    let plain = stdout_of(&plain, "node");
    assert_eq!(joined(frames(&svg)), joined(frames(&plain)));
    assert!(title(&svg, "JS:*matMul ").contains(", new here"), "{svg}");
    assert!(!svg.contains("<title>gone"));
    // Nothing has changed against itself.
    let itself = sample("node", "perf.data");
    let svg = stdout_of(
        &["flamegraph", "--diff", itself.to_str().expect("text")],
        "node",
    );
    assert!(is_unchanged(&svg));
}

/// Whether no frame of a difference is drawn as more or less.
pub(crate) fn is_unchanged(svg: &str) -> bool {
    let mut fills = svg.split("fill=\"rgb(").skip(1).filter_map(|rest| {
        let (fill, rest) = rest.split_once(')')?;
        rest.starts_with("\" fg:x").then_some(fill)
    });
    fills.all(|fill| fill == "224,224,224")
}

/// What the title of a frame says.
fn title(svg: &str, name: &str) -> String {
    let start = svg.find(&format!("<title>{name}")).expect("a frame") + "<title>".len();
    let title = svg[start..].split("</title>").next();
    title.expect("an end").to_owned()
}

/// Four functions of code made at run time, called by a fifth, of which the second takes so much.
fn four_functions(run: u64, second: u64) -> Vec<u8> {
    let mut recording = Recording::new(Stacks::Callchain);
    recording.comm(7, 7, b"app");
    recording.map(7, 0x1000, 0x1000, 0, b"//anon");
    let mut time = 1_000_000 * run;
    for (function, count) in [(0, 100 + run), (1, second), (2, 100 - run), (3, 100)] {
        let chain = [CONTEXT_USER, 0x1000 + 0x100 * function, 0x1400];
        for _ in 0..count {
            time += 1;
            recording.sample(&Sample {
                ip: chain[1],
                pid: 7,
                tid: 7,
                time,
                period: 1_000_000,
                chain: &chain,
                user: None,
            });
        }
    }
    recording.file()
}

#[test]
fn a_difference_colours_what_was_tested() {
    let folder = tempfile::tempdir().expect("a folder");
    let map = "1000 100 one\n1100 100 two\n1200 100 three\n1300 100 four\n1400 100 around\n";
    fs::write(folder.path().join("perf-7.map"), map).expect("a map");
    for run in 0..3 {
        let write = |name: &str, second| {
            let file = four_functions(run, second);
            fs::write(folder.path().join(format!("{name}{run}")), file).expect("a recording");
        };
        // The first run has not what they have on average.
        write("base", 103 - 3 * run);
        write("new", 297 + 3 * run);
    }
    let draw = |arguments: &[&str]| {
        let output = pjit()
            .current_dir(folder.path())
            .args(["flamegraph", "--perf-map", "perf-7.map"])
            .args(arguments)
            .output()
            .expect("the binary can be run");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        String::from_utf8(output.stdout).expect("text")
    };
    let bases = ["--diff", "base0", "--diff", "base1", "--diff", "base2"];
    let svg = draw(&[&bases[..], &["--to", "new0", "new1", "new2"]].concat());
    let (red, blue) = color(&svg, "two ");
    assert!(red > blue, "more is red: {red} {blue}");
    for same in ["one ", "three ", "four "] {
        assert_eq!(color(&svg, same), (224, 224), "{same}");
    }
    let pale = color(&svg, "around ");
    assert!(pale.0 > pale.1 && pale.1 > blue, "{pale:?}");
    let all = title(&svg, "all");
    assert!(all.contains("; 400.00 → 600.00 ms, 1.50 times"), "{all}");
    assert!(title(&svg, "two ").contains(", 3.00 times, slower"));
    // Runs without an option are the new ones, too.
    assert_eq!(svg, draw(&[&bases[..], &["new0", "new1", "new2"]].concat()));
    // So are folders with runs.
    for side in ["base", "new"] {
        fs::create_dir(folder.path().join(side)).expect("made");
        for run in 0..3 {
            let from = folder.path().join(format!("{side}{run}"));
            let to = folder.path().join(format!("{side}/{run}.data"));
            fs::copy(from, to).expect("copied");
        }
    }
    let of_folders = draw(&["--diff", "base", "--to", "new"]);
    assert_eq!(title(&of_folders, "all"), all);
    // The figures are means, as the text says, and those of the side that it says.
    assert!(svg.contains("new0 and 2 more compared with base0 and 2 more"));
    let of_side = |side: &str| {
        let told = svg
            .split(side)
            .nth(1)
            .and_then(|rest| rest.split("means of 3 runs").next());
        told.unwrap_or_default().to_owned()
    };
    let (new, base) = (
        of_side("y=\"41.40\" font-size=\"12.0\">"),
        of_side("(before: "),
    );
    assert!(new.starts_with("600 samples, 600 ms of "), "{new}");
    assert!(base.starts_with("400 samples, 400 ms of "), "{base}");
    assert!(!svg.contains("common factor"));
    let one = draw(&["--diff", "base0", "new0"]);
    assert!(one.contains("not tested: 1 run each"));
    assert!(
        title(&one, "two ").ends_with(", large)"),
        "{}",
        title(&one, "two ")
    );
    assert_eq!(color(&one, "one "), (224, 224));
    // The page has the same in its data.
    let page = draw(&[&bases[..], &["--format", "html", "new0", "new1", "new2"]].concat());
    assert!(page.contains("<html"));
    // Both sides say how far they can be trusted.
    assert!(svg.contains("0 lost (the worst of 3 runs)"));
    let quality = svg.split("; before: ").nth(1).unwrap_or_default();
    assert!(quality.contains("0 lost (the worst of 3 runs)"));
    // One recording is one run, however often it is named.
    let twice = ["--diff", "base0", "--diff", "base0", "new0", "new1"];
    let output = pjit()
        .current_dir(folder.path())
        .arg("flamegraph")
        .args(twice)
        .output()
        .expect("the binary can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("base0: the same recording twice"), "{said}");
}
