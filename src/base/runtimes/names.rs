//! Names of functions without what changes from build to build and from run to run.
//!
//! In: a symbol's name and who made its code. Out: a [`CleanName`], by which a function is the same in another recording: no
//! hashes, clones' numbers, tiers, addresses; its source place apart.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::Producer;
use super::tails::telling;

/// A function's name, and where in the sources it is, as far as the name tells.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct CleanName {
    /// The name alone.
    pub name: String,
    /// Path of the source file; empty when the name tells none.
    pub file: String,
    /// Line, 0 when not told.
    pub line: u32,
    /// Column, 0 when not told.
    pub column: u32,
}

/// What is shown where a function has no name.
pub const ANONYMOUS: &str = "(anonymous)";

impl CleanName {
    /// Cleans a symbol's name.
    #[must_use]
    pub fn of(name: &str, producer: Option<Producer>) -> Self {
        match producer {
            Some(producer) => (producer.row().clean)(name),
            None => Self::plain(native(name)),
        }
    }

    /// A name that tells no place.
    #[must_use]
    pub fn plain(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// The base name of the file; what is built into node is its path.
    #[must_use]
    pub fn file_name(&self) -> &str {
        if self.file.starts_with("node:") {
            return &self.file;
        }
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }

    /// Name, file and line in one text, the file by its base name.
    #[must_use]
    pub fn short(&self) -> String {
        self.with_place(self.file_name(), false)
    }

    /// The same with the column.
    #[must_use]
    pub fn with_column(&self) -> String {
        self.with_place(self.file_name(), true)
    }

    /// The same with the file's path and the column.
    #[must_use]
    pub fn full(&self) -> String {
        self.with_place(&self.file, true)
    }

    fn with_place(&self, file: &str, with_column: bool) -> String {
        // A file that stands for itself.
        let is_file = !file.is_empty() && self.name == self.file_name();
        let mut text = if is_file {
            String::new()
        } else {
            self.name.clone()
        };
        if is_file {
            text.push_str(file);
        } else if !file.is_empty() {
            text.push(' ');
            text.push_str(file);
        }
        if self.line > 0 {
            text.push_str(&format!(":{}", self.line));
            if with_column && self.column > 0 {
                text.push_str(&format!(":{}", self.column));
            }
        }
        text
    }
}

/// Names for tables, each with the object it lies in: with the base name of the file and the line. Where only that tells two of an
/// object apart, with as many folders of the file as it takes, and with the column as well.
#[must_use]
pub fn told_apart<'a>(
    names: impl Iterator<Item = (&'a CleanName, &'a str)> + Clone,
) -> Vec<String> {
    let mut labels: Vec<String> = names.clone().map(|(name, _)| name.short()).collect();
    let mut numbers: FxHashMap<(&str, &str), Vec<usize>> = FxHashMap::default();
    let mut is_shared = false;
    for (at, (label, (_, object))) in labels.iter().zip(names.clone()).enumerate() {
        let known = numbers.entry((label, object)).or_default();
        known.push(at);
        is_shared |= known.len() > 1;
    }
    if !is_shared {
        return labels;
    }
    let groups: Vec<Vec<usize>> = numbers.into_values().filter(|of| of.len() > 1).collect();
    let names: Vec<&CleanName> = names.map(|(name, _)| name).collect();
    for group in groups {
        let mut files: Vec<&str> = group.iter().map(|at| names[*at].file.as_str()).collect();
        files.sort_unstable();
        files.dedup();
        let ends = telling(&files);
        // Those of one file that are different ones.
        let mut of_file: FxHashMap<&str, Option<&CleanName>> = FxHashMap::default();
        for name in group.iter().map(|at| names[*at]) {
            let known = of_file.entry(&name.file).or_insert(Some(name));
            *known = known.filter(|known| *known == name);
        }
        for at in group {
            let name = names[at];
            let end = files.binary_search(&name.file.as_str()).ok();
            let end = end.filter(|_| files.len() > 1).map(|place| ends[place]);
            let file = end.unwrap_or(name.file_name());
            labels[at] = name.with_place(file, of_file[name.file.as_str()].is_none());
        }
    }
    labels
}

/// Label of the kernel and its modules.
pub const KERNEL: &str = "[kernel]";

/// Base names of objects without versions and hashes: what stays when a program is built again or updated.
#[must_use]
pub fn clean_object(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    if let Some(stem) = name.strip_suffix(".so")
        && let Some((stem, hash)) = stem.rsplit_once('-')
        && hash.len() == 16
        && is_hex(hash)
    {
        return stem;
    }
    // Of a library's version the first number stays: `libz.so.1` of `libz.so.1.2.13`.
    if let Some((stem, version)) = name.split_once(".so.")
        && let Some((major, rest)) = version.split_once('.')
        && is_number(major)
        && rest.split('.').all(is_number)
    {
        return &name[..stem.len() + ".so.".len() + major.len()];
    }
    match name.strip_prefix("python3.") {
        Some(minor) if minor.bytes().all(|b| b.is_ascii_digit()) => "python3",
        _ => name,
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Without the hashes of crates that LLVM's linker for WebAssembly leaves in Rust's names: `core::fmt::write` of
/// `core[c5930c85a12de822]::fmt::write`. They are other ones in each build.
#[must_use]
pub fn without_crate_hashes(name: &str) -> Cow<'_, str> {
    let bytes = name.as_bytes();
    let mut out = String::new();
    let mut copied = 0;
    for at in memchr::memchr_iter(b'[', bytes) {
        let is_behind_word =
            at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        let digits = bytes[at + 1..]
            .iter()
            .take_while(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let behind = at + 1 + digits.count();
        // `wasm[0]` has a number.
        let is_hash = is_behind_word
            && (10..=17).contains(&(behind - at))
            && bytes.get(behind) == Some(&b']');
        if is_hash {
            out.push_str(&name[copied..at]);
            copied = behind + 1;
        }
    }
    if copied == 0 {
        return name.into();
    }
    out.push_str(&name[copied..]);
    out.into()
}

/// Without what compilers and linkers put behind: hashes of Rust, versions of symbols, numbers of clones.
#[must_use]
pub fn native(name: &str) -> &str {
    // The first function of a file may be called so altogether.
    let versioned = memchr::memchr(b'@', name.as_bytes()).filter(|&at| at > 0);
    let name = match versioned {
        Some(at) if is_version(&name[at..]) => &name[..at],
        _ => name,
    };
    let mut name = name;
    loop {
        let shorter = without_clone(without_hash(name));
        if shorter.len() == name.len() {
            return name;
        }
        name = shorter;
    }
}

/// `@GLIBC_2.34`, `@@GLIBC_2.2.5`. Of Crystal's `*Foo(UInt64)@Foo(T)#go` the rest is the function.
fn is_version(text: &str) -> bool {
    let version = text.trim_start_matches('@');
    let may_be = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    !version.starts_with("plt") && version.bytes().all(may_be)
}

/// Behind it stand the 16 digits of a hash.
const HASH: &str = "::h";

/// Without the hash that Rust puts behind names, which is another one in each build.
#[must_use]
pub fn without_hash(name: &str) -> &str {
    let Some(at) = name.len().checked_sub(HASH.len() + 16) else {
        return name;
    };
    match name.get(at..).and_then(|end| end.strip_prefix(HASH)) {
        Some(hash) if is_hex(hash) => &name[..at],
        _ => name,
    }
}

fn without_clone(name: &str) -> &str {
    let name = name.strip_suffix(".cold").unwrap_or(name);
    // All names of native code come here, and few end so.
    if !name.ends_with(|c: char| c.is_ascii_digit()) {
        return name;
    }
    let Some(dot) = memchr::memrchr(b'.', name.as_bytes()) else {
        return name;
    };
    let (rest, number) = (&name[..dot], &name[dot + 1..]);
    let kinds = [
        ".llvm",
        ".part",
        ".isra",
        ".constprop",
        ".cold",
        ".lto_priv",
        ".__part",
        ".__uniq",
    ];
    let clone = kinds.iter().find_map(|kind| rest.strip_suffix(kind));
    clone.filter(|_| is_number(number)).unwrap_or(name)
}

/// Splits `:NUMBER` off the end.
pub(super) fn trailing_number(text: &str) -> (&str, u32) {
    let split = text.rsplit_once(':');
    let number = split.filter(|(_, n)| is_number(n)).and_then(|(rest, n)| {
        let n = n.parse().ok()?;
        Some((rest, n))
    });
    number.unwrap_or((text, 0))
}

/// The path of a script that is named by its URL: `file:///w/a%20b.mjs?t=1` is `/w/a b.mjs`. What asks for a module anew at each
/// start adds a query to it. webpack's URLs stay, without what it writes around a file's path. Other names are as they are.
#[must_use]
pub fn script_path(name: &str) -> Cow<'_, str> {
    if name.starts_with("webpack") {
        return webpack_url(name);
    }
    let Some(url) = name.strip_prefix("file://") else {
        return Cow::Borrowed(name);
    };
    let path = url.split(['?', '#']).next().unwrap_or(url);
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let is_hex = |pair: &&str| pair.bytes().all(|digit| digit.is_ascii_hexdigit());
        let code = digits.filter(is_hex);
        let code = code.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(path), Cow::Owned)
}

/// `webpack:///./a.js?f00d` and `webpack:///./a.js?./node_modules/babel-loader/lib/index.js` are `webpack:///./a.js`: a hash or
/// loaders, which are no part of the file. `webpack-internal:///LOADER??OPTIONS!./a.vue?vue&type=script` is by its module's name.
fn webpack_url(url: &str) -> Cow<'_, str> {
    const BY_NAME: &str = "webpack-internal:///";
    let without_query = |text| -> &str {
        let end = memchr::memchr(b'?', str::as_bytes(text));
        end.map_or(text, |end| &text[..end])
    };
    if url.starts_with("webpack:") {
        return Cow::Borrowed(without_query(url));
    }
    match url.strip_prefix(BY_NAME) {
        Some(name) if name.contains('!') => {
            let file = name.rsplit('!').next().unwrap_or(name);
            Cow::Owned(format!("{BY_NAME}{}", without_query(file)))
        }
        Some(_) => Cow::Borrowed(without_query(url)),
        None => Cow::Borrowed(url),
    }
}

/// The file that a text names by `//# sourceURL=`, as `eval` is given them; nothing where it is none: templates of lodash say
/// `lodash.templateSources[0]`. Servers that make texts of files anew add a query to the path.
#[must_use]
pub fn evaled_file(url: &str) -> Option<Cow<'_, str>> {
    /// No path is longer, and names of all code of a text have it.
    const LONGEST: usize = 4096;
    let is_file = url.contains('/') && !url.starts_with("data:") && !url.contains(char::is_control);
    let file = (is_file && url.len() <= LONGEST).then(|| script_path(url))?;
    if !url.starts_with('/') {
        return Some(file);
    }
    let base = url.rfind('/').map_or(0, |slash| slash + 1);
    let query = url[base..].find('?').filter(|at| *at > 0);
    Some(query.map_or(file, |at| Cow::Borrowed(&url[..base + at])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_eval_is_given_name_files() {
        for (url, file) in [
            ("/w/src/a.ts", Some("/w/src/a.ts")),
            ("/w/src/App.vue?vue&type=script", Some("/w/src/App.vue")),
            ("/w/why?/a.js", Some("/w/why?/a.js")),
            ("file:///w/a%20b.mjs?t=1", Some("/w/a b.mjs")),
            (
                "webpack:///../node_modules/lodash/lodash.js?",
                Some("webpack:///../node_modules/lodash/lodash.js"),
            ),
            (
                "webpack://app/./a.js?./node_modules/babel-loader/lib/index.js!./x/y.js",
                Some("webpack://app/./a.js"),
            ),
            (
                "webpack-internal:///./a.js?f00d",
                Some("webpack-internal:///./a.js"),
            ),
            (
                "webpack-internal:///./node_modules/vue-loader/dist/index.js??set[0]!./a.vue?vue&type=script",
                Some("webpack-internal:///./a.vue"),
            ),
            (
                "webpack-internal:///(rsc)/./a.tsx",
                Some("webpack-internal:///(rsc)/./a.tsx"),
            ),
            ("lodash.templateSources[0]", None),
            ("<unknown>", None),
            ("", None),
            ("data:text/javascript,1", None),
        ] {
            assert_eq!(evaled_file(url).as_deref(), file, "{url}");
        }
        assert_eq!(evaled_file(&"/a".repeat(3000)), None);
    }

    fn check(producer: Option<Producer>, cases: &[(&str, &str)]) {
        for (name, clean) in cases {
            assert_eq!(CleanName::of(name, producer).full(), *clean, "{name}");
        }
    }

    #[test]
    fn builds_leave_no_trace_in_native_names() {
        check(
            None,
            &[
                ("hotrs::tree::h0123456789abcdef", "hotrs::tree"),
                ("hotrs::tree::h0123456789abcdef.llvm.77", "hotrs::tree"),
                ("f.part.0.isra.1", "f"),
                ("f.constprop.0.cold", "f"),
                ("work.__part.16", "work"),
                (
                    "*Foo(UInt64)@Foo(T)#go<UInt64>:UInt64",
                    "*Foo(UInt64)@Foo(T)#go<UInt64>:UInt64",
                ),
                ("memcpy@@GLIBC_2.14", "memcpy"),
                ("memcpy@GLIBC_2.2.5", "memcpy"),
                ("memcpy@plt", "memcpy@plt"),
                ("a.b", "a.b"),
                ("wasm[0]::function[4]", "wasm[0]::function[4]"),
                ("fmt::{closure#0}", "fmt::{closure#0}"),
            ],
        );
    }

    #[test]
    fn runtimes_names_lose_tiers_numbers_and_addresses() {
        check(
            Some(Producer::V8),
            &[
                ("JS:*fib /w/hot.js:3:19", "fib /w/hot.js:3:19"),
                ("LazyCompile:~fib /w/hot.js:3:19", "fib /w/hot.js:3:19"),
                ("JS:* /w/hot.js:11:56", "(anonymous) /w/hot.js:11:56"),
                ("JS:*'fib /w/hot.js:3:19", "fib /w/hot.js:3:19"),
                ("JS:+' /w/hot.js:11:56", "(anonymous) /w/hot.js:11:56"),
                ("JS:o*hot /w/hot.js:2:13", "hot /w/hot.js:2:13"),
                ("JS:~f ext:core/00.js:7:2", "f ext:core/00.js:7:2"),
                (
                    "JS:^get size node:internal/x:321:20",
                    "get size node:internal/x:321:20",
                ),
                ("JS:betaLoop-1-liftoff", "betaLoop"),
                ("JS:betaLoop-2-turbofan", "betaLoop"),
                ("JS:wasm-function[3]-3-turbofan", "wasm-function[3]"),
                ("JS:*a file:///w/my dir/h.js:1:2", "a /w/my dir/h.js:1:2"),
                (
                    "JS:*a file:///w/my%20dir/h.mjs?t=17:1:2",
                    "a /w/my dir/h.mjs:1:2",
                ),
                (
                    "JS:*a file:///w/100%/h%zz.mjs#x:1:2",
                    "a /w/100%/h%zz.mjs:1:2",
                ),
                ("JS:*a /w/why?/h.js:1:2", "a /w/why?/h.js:1:2"),
                ("Builtins_RegExpSplit", "Builtin:RegExpSplit"),
                ("Builtin:ArrayMap", "Builtin:ArrayMap"),
            ],
        );
        check(
            Some(Producer::Php),
            &[
                ("TRACE-20$Words::count$5", "Words::count"),
                ("JIT$mandel", "mandel"),
                ("JIT$$trace_exit", "JIT$$trace_exit"),
                ("JIT${closure:/w/hot.php:12}", "{closure} /w/hot.php:12"),
            ],
        );
        check(
            Some(Producer::CPython),
            &[("py::words:/w/hot.py", "words /w/hot.py")],
        );
        check(
            Some(Producer::Beam),
            &[
                ("$hot:fib/1", "hot:fib/1"),
                ("hot:fib/1-CodeInfoPrologue", "hot:fib/1"),
            ],
        );
        check(
            Some(Producer::HotSpot),
            &[
                ("Hot$$Lambda$18.0x000000080010a000.run()", "Hot$$Lambda"),
                ("Hot.fib(int)", "Hot.fib(int)"),
                (
                    "int a.Hot.fib(int, java.lang.String)",
                    "a.Hot.fib(int, java.lang.String)",
                ),
            ],
        );
        check(
            Some(Producer::DotNet),
            &[
                ("void App::Run()[Tier1]", "void App::Run()"),
                ("void App::Run()[InstrumentedTier]", "void App::Run()"),
                ("[Tier1]", "[Tier1]"),
                ("int[] f(int[])", "int[] f(int[])"),
            ],
        );
    }

    #[test]
    fn objects_keep_their_name_only() {
        for (path, clean) in [
            ("/usr/bin/python3.11", "python3"),
            ("/w/target/libfoo-0123456789abcdef.so", "libfoo"),
            ("/usr/lib/libc.so.6", "libc.so.6"),
            ("/usr/lib/libz.so.1.2.13", "libz.so.1"),
            ("/opt/libx.so.1.beta", "libx.so.1.beta"),
            ("prog", "prog"),
        ] {
            assert_eq!(clean_object(path), clean);
        }
    }

    #[test]
    fn hashes_of_crates_go_and_numbers_stay() {
        for (name, clean) in [
            ("core[c5930c85a12de822]::fmt::write", "core::fmt::write"),
            (
                "<f64 as core[c5930c85a12de822]::str::traits::FromStr>::from_str",
                "<f64 as core::str::traits::FromStr>::from_str",
            ),
            (
                "alloc[1a2b3c4d5e6f7a]::raw_vec::finish_grow::<alloc[1a2b3c4d5e6f7a]::alloc::Global>",
                "alloc::raw_vec::finish_grow::<alloc::alloc::Global>",
            ),
            (
                "wasm[0]::function[1234567]::f",
                "wasm[0]::function[1234567]::f",
            ),
            ("<[u8; 4]>::f", "<[u8; 4]>::f"),
            ("operator[]", "operator[]"),
        ] {
            assert_eq!(without_crate_hashes(name), clean);
        }
    }

    #[test]
    fn names_are_as_long_as_it_takes_to_tell_them_apart() {
        let place = |file: &str, column| CleanName {
            name: ANONYMOUS.to_owned(),
            file: file.to_owned(),
            line: 7,
            column,
        };
        let names = [
            place("/w/a.js", 1),
            place("/w/b.js", 1),
            place("/w/b.js", 5),
            place("/w/c.js", 1),
            place("/x/c.js", 1),
            place("/w/a.js", 9),
        ];
        let objects = ["[jit]", "[jit]", "[jit]", "[jit]", "[jit]", "other"];
        assert_eq!(
            told_apart(names.iter().zip(objects)),
            [
                "(anonymous) a.js:7",
                "(anonymous) b.js:7:1",
                "(anonymous) b.js:7:5",
                "(anonymous) w/c.js:7",
                "(anonymous) x/c.js:7",
                "(anonymous) a.js:7",
            ]
        );
    }
}
