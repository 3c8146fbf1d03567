//! Payloads as text, by formats in the manner of the kernel's.

use super::format::Tracepoint;
use super::{Context, Tracepoints, print};

/// A format with the usual common fields, `fields` (declaration, offset, size, signed) and a `print fmt`.
fn format(fields: &[(&str, usize, usize, bool)], print: &str) -> String {
    let mut text = "name: probe\nID: 7\nformat:\n".to_owned();
    let mut line = |&(declaration, offset, size, signed): &(&str, usize, usize, bool)| {
        text += &format!(
            "\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{};\n",
            u8::from(signed)
        );
    };
    line(&("unsigned short common_type", 0, 2, false));
    line(&("int common_pid", 4, 4, true));
    text += "\n";
    let mut line = |&(declaration, offset, size, signed): &(&str, usize, usize, bool)| {
        text += &format!(
            "\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{};\n",
            u8::from(signed)
        );
    };
    fields.iter().for_each(&mut line);
    text + "\nprint fmt: " + print + "\n"
}

fn render(fields: &[(&str, usize, usize, bool)], print: &str, data: &[u8]) -> String {
    let text = format(fields, print);
    let (_, point) = Tracepoint::parse("sys", &text, 8).expect("has id and name");
    let strings = [(0xffff_8000_0000_1000, "softirq".to_owned())].into();
    let context = Context {
        data,
        strings: &strings,
        functions: &|address| {
            (0x1000..0x2000)
                .contains(&address)
                .then(|| ("schedule".to_owned(), 0x1000))
        },
        long_size: 8,
    };
    let mut out = Vec::new();
    print::payload(&point, &context, &mut out);
    String::from_utf8(out).expect("text")
}

/// The common fields, then `rest`.
fn payload(rest: &[u8]) -> Vec<u8> {
    [&[7, 0, 0, 0, 1, 0, 0, 0], rest].concat()
}

const INT: (&str, usize, usize, bool) = ("int a", 8, 4, true);
const LONG: (&str, usize, usize, bool) = ("unsigned long b", 16, 8, false);

fn two(a: i32, b: u64) -> Vec<u8> {
    payload(&[&a.to_le_bytes()[..], &[0; 4], &b.to_le_bytes()].concat())
}

fn numbers(print: &str, a: i32, b: u64) -> String {
    render(&[INT, LONG], print, &two(a, b))
}

#[test]
fn conversions_are_those_of_printf() {
    let show = |fmt: &str, a, b| numbers(&format!("\"{fmt}\", REC->a, REC->b"), a, b);
    assert_eq!(show("%d %lu", -3, 7), "-3 7");
    assert_eq!(show("[%5d] [%-8lx]", -3, 0xabc), "[   -3] [abc     ]");
    assert_eq!(show("%03d 0x%08lx", 5, 0xbeef), "005 0x0000beef");
    assert_eq!(show("%#x %#016llx", 0, 0xff), "0 0x000000000000ff");
    assert_eq!(show("%u%% %hu", -1, 0x1_0002), "4294967295% 2");
    assert_eq!(show("%c %.5lu\\n", 65, 42), "A 00042\n");
    assert_eq!(
        show("%k %d", 1, 2),
        ">k< 1",
        "unknown letters take no argument"
    );
}

#[test]
fn expressions_follow_c() {
    let value = |expression: &str| numbers(&format!("\"%ld\", {expression}"), 6, 40);
    assert_eq!(value("REC->a + REC->b * 2 - 1"), "85");
    assert_eq!(value("(REC->a | 1) << 2"), "28");
    assert_eq!(value("REC->b - 1 - 1"), "38");
    assert_eq!(value("REC->a == 6 && !(REC->b & 1) ? 1UL : 2UL"), "1");
    assert_eq!(value("REC->a > 6 ? 1 : REC->b > 6 ? 0x10 : 3"), "16");
    assert_eq!(value("(u8)(REC->b + 250)"), "34");
    assert_eq!(value("((unsigned long)(REC->a))"), "6");
    assert_eq!(value("~0 == -1UL"), "1");
    assert_eq!(value("REC->b / (REC->a - 6)"), "0", "no division by zero");
    assert_eq!(value("__builtin_expect(!!(REC->a), 1)"), "1");
    assert_eq!(value("sizeof(REC->b) + sizeof(unsigned int)"), "12");
}

#[test]
fn scheduler_states_are_flags() {
    let print = r#""state=%s%s", (REC->a & ((1 << 4) - 1)) ? __print_flags(REC->a & 15, "|", { 0x1, "S" }, { 0x2, "D" }) : "R", REC->a & 0x100 ? "+" : """#;
    assert_eq!(numbers(print, 0, 0), "state=R");
    assert_eq!(numbers(print, 0x103, 0), "state=S|D+");
    assert_eq!(numbers(print, 12, 0), "state=0xc", "bits without a name");
}

#[test]
fn symbols_and_flags_have_computed_values() {
    let print = r#""%s %s", __print_symbolic(REC->a, { 0, "NONE" }, { (1 << 2), "FO" "UR" }, { TIMER_SOFTIRQ, "TIMER" }), (REC->b) ? __print_flags(REC->b, "|", {( unsigned long)(((( gfp_t)((((1UL))) << (6))) | (( gfp_t)((((1UL))) << (7))))), "GFP_X"}, { 0, ((void *)0) }) : "none""#;
    assert_eq!(numbers(print, 4, 0xc0), "FOUR GFP_X");
    assert_eq!(numbers(print, 1, 0), "TIMER none");
    assert_eq!(numbers(print, 9, 0x1c0), "0x9 GFP_X|0x100");
}

#[test]
fn strings_and_arrays_come_from_the_payload() {
    let fields = [
        ("char comm[8]", 8, 8, false),
        ("__data_loc char[] name", 16, 4, false),
        ("__data_loc u8[] raw", 20, 4, false),
        ("unsigned long args[2]", 24, 16, false),
    ];
    let place = |offset: u32, len: u32| (len << 16 | offset).to_le_bytes();
    let data = payload(
        &[
            &b"node\0xyz"[..],
            &place(40, 4),
            &place(44, 3),
            &1u64.to_le_bytes(),
            &0xabcu64.to_le_bytes(),
            b"eth\0",
            &[1, 2, 0xff],
        ]
        .concat(),
    );
    let show = |print: &str| render(&fields, print, &data);
    assert_eq!(show(r#""%s %s", REC->comm, __get_str(name)"#), "node eth");
    assert_eq!(
        show(r#""[%-6s|%.2s]", REC->comm, REC->comm"#),
        "[node  |no]"
    );
    assert_eq!(show(r#""[%.*s]", 3, __get_str(name)"#), "[eth]");
    assert_eq!(
        show(r#""(%lx, %lx)", REC->args[0], REC->args[1]"#),
        "(1, abc)"
    );
    let hex = "__get_dynamic_array(raw), __get_dynamic_array_len(raw)";
    assert_eq!(show(&format!("\"%s\", __print_hex({hex})")), "01 02 ff");
    assert_eq!(show(&format!("\"%s\", __print_hex_str({hex})")), "0102ff");
    assert_eq!(
        show(&format!("\"%s\", __print_array({hex}, 1)")),
        "{0x1,0x2,0xff}"
    );
    assert_eq!(show(r#""%*phC", 2, __get_dynamic_array(raw)"#), "01:02");
    let cut = |print: &str| render(&fields, print, &data[..18]);
    assert_eq!(
        cut(r#""%s|%s|%lx", REC->comm, __get_str(name), REC->args[1]"#),
        "node||0"
    );
}

#[test]
fn pointers_are_functions_addresses_or_strings() {
    let show = |print: &str, b| numbers(print, 0, b);
    assert_eq!(
        show(r#""%pS %ps", (void *)REC->b, REC->b"#, 0x1010),
        "schedule+0x10 schedule"
    );
    assert_eq!(show(r#""%pS", REC->b"#, 0x5000), "0x5000");
    assert_eq!(
        show(r#""%p %p", REC->b, ((void *)0)"#, 0x5000),
        "0x5000 (nil)"
    );
    assert_eq!(show(r#""%s", REC->b"#, 0xffff_8000_0000_1000), "softirq");
    let fields = [
        ("__u8 v4[4]", 8, 4, false),
        ("__u8 v6[16]", 12, 16, false),
        ("__u8 mac[6]", 28, 6, false),
    ];
    let mut data = payload(&[127, 0, 0, 1]);
    data.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x1a]);
    data.extend([1, 2, 3, 4, 5, 0xff]);
    let print = r#""%pI4 %pI6c %pI6 %pM %pU", REC->v4, REC->v6, REC->v6, REC->mac, REC->v6"#;
    assert_eq!(
        render(&fields, print, &data),
        "127.0.0.1 fe80::1a fe80:0000:0000:0000:0000:0000:0000:001a 01:02:03:04:05:ff \
         fe800000-0000-0000-0000-00000000001a"
    );
}

#[test]
fn what_is_not_understood_shows_the_fields() {
    let fields = [
        INT,
        LONG,
        ("const void * p", 24, 8, false),
        ("char c[4]", 32, 4, false),
    ];
    let mut data = two(-2, 16);
    data.extend(0xffffu64.to_le_bytes());
    data.extend(b"ab\0\0");
    for print in [
        r#""%s", jbd2_dev_to_name(REC->a)"#,
        r#""%d %d", REC->a"#,
        r#""%d", &REC->a"#,
        r#""%d", REC->missing"#,
        r#""%d", (REC->a"#,
        "",
    ] {
        assert_eq!(
            render(&fields, print, &data),
            "[FAILED TO PARSE] a=-2 b=0x10 p=0xffff c=ab",
            "{print}"
        );
    }
}

#[test]
fn hostile_formats_end_soon() {
    let deep = format!("\"%d\", {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(numbers(&deep, 0, 0).starts_with("[FAILED"));
    let minuses = format!("\"%d\", {}1", "-".repeat(100_000));
    assert!(numbers(&minuses, 0, 0).starts_with("[FAILED"));
    let chain = format!("\"%d\", REC->a{}", " + REC->a".repeat(10_000));
    assert!(numbers(&chain, 0, 0).starts_with("[FAILED"));
    let wide = numbers("\"%99999999999d\", REC->a", 1, 0);
    assert!(wide.len() < 2000);
    let all = format!("\"{}\"{}", "%1000c".repeat(1000), ", 32".repeat(1000));
    let cut = numbers(&all, 1, 0);
    assert!(
        cut.len() <= 8 << 10 && cut.ends_with("[cut]"),
        "{}",
        cut.len()
    );
    let long = numbers("\"%s\", __print_hex(REC->b, -1)", 1, 0);
    assert_eq!(long.len(), 8 * 3 - 1, "no more than the payload has");
}

#[test]
fn the_section_is_read_as_far_as_it_goes() {
    let text =
        format(&[INT], "\"a=%d %s\", REC->a, REC->b").replace("%s\", REC->a, REC->b", "\", REC->a");
    let mut section = b"\x17\x08\x44tracing0.6\0\0\x08".to_vec();
    section.extend(4096u32.to_le_bytes());
    for name in ["header_page\0", "header_event\0"] {
        section.extend(name.as_bytes());
        section.extend(0u64.to_le_bytes());
    }
    section.extend(0u32.to_le_bytes());
    section.extend(1u32.to_le_bytes());
    section.extend(b"sched\0");
    section.extend(1u32.to_le_bytes());
    section.extend((text.len() as u64).to_le_bytes());
    section.extend(text.as_bytes());
    section.extend(0u32.to_le_bytes());
    let strings = b"0xffff0010 : \"hello\\n\"\n";
    section.extend((strings.len() as u32).to_le_bytes());
    section.extend(strings);
    let points = Tracepoints::parse(&section);
    assert_eq!(points.name(7).as_deref(), Some("sched:probe"));
    assert_eq!(
        points.strings.get(&0xffff_0010).map(String::as_str),
        Some("hello")
    );
    assert_eq!(
        points.render(7, &two(5, 0), &|_| None).as_deref(),
        Some("a=5 ")
    );
    assert_eq!(points.render(8, &[], &|_| None), None);
    for end in 0..section.len() {
        let _ = Tracepoints::parse(&section[..end]);
    }
}
