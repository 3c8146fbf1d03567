//! Layout of whole reports. The expected texts follow perf: the large ones were compared with perf 6.1 on
//! recordings of the same shape.

use super::stdio::{quality_line, write};
use crate::ids::{Idx, index_vec};
use crate::profile::SampleFilter;
use crate::profile::{EventId, EventQuality, Profile, StackEnd, StackId};
use crate::report::build;
use crate::report::keys::{FieldSpec, SortSpec};
use crate::report::options::{
    CallGraph, CallGraphMode, ChainOptions, ChainOrder, ColumnOptions, Grouping, LayoutOptions,
    ReportOptions, RowFilters, RowOptions,
};
use crate::report::testing::ProfileBuilder;

fn text(profile: &Profile, options: &ReportOptions) -> String {
    let report = build(profile, options).expect("the profile has samples and chains");
    let mut out = Vec::new();
    write(&report, &mut out).expect("writing to memory");
    String::from_utf8(out).expect("names are text")
}

/// Rows and trees without the comments, trailing blanks visible as they are.
fn rows(profile: &Profile, options: &ReportOptions) -> String {
    let options = ReportOptions {
        layout: LayoutOptions {
            quiet: true,
            ..options.layout.clone()
        },
        ..options.clone()
    };
    text(profile, &options).trim_end_matches('\n').to_owned()
}

fn options(graph: &str) -> ReportOptions {
    let mut call_graph = CallGraph::default();
    call_graph.apply(graph).expect("valid specification");
    ReportOptions {
        chains: ChainOptions {
            call_graph,
            ..ChainOptions::default()
        },
        ..ReportOptions::default()
    }
}

fn flat() -> ReportOptions {
    ReportOptions {
        rows: RowOptions {
            children: false,
            ..options("none").rows
        },
        ..options("none")
    }
}

fn sorted_by(keys: &str, options: ReportOptions) -> ReportOptions {
    let sort = SortSpec::parse(keys, SortSpec::default_keys()).expect("known keys");
    ReportOptions {
        columns: ColumnOptions {
            sort: Some(sort),
            ..options.columns.clone()
        },
        ..options
    }
}

/// Fourteen samples below `main`; functions lie in the order of the first line.
fn family() -> Profile {
    let mut builder = ProfileBuilder::default();
    for name in ["leaf1", "leaf2", "rec", "mid", "main"] {
        builder.frame(name);
    }
    let stacks = [
        ("main", 1),
        ("leaf2;mid;main", 4),
        ("leaf1;rec;mid;main", 2),
        ("leaf2;rec;mid;main", 1),
        ("leaf1;mid;main", 3),
        ("0x70001234;mid;main", 1),
        ("mid;main", 1),
        ("leaf2;main", 1),
    ];
    for (stack, times) in stacks {
        (0..times).for_each(|_| builder.sample("prog", stack, 1000));
    }
    builder.finish()
}

#[test]
fn callers_are_credited_once_and_their_trees_start_at_them() {
    let got = rows(&family(), &options("caller"));
    let expected = &"
   100.00%     7.14%  prog     a                 [.] main
            |
            ---main
               |          
               |--85.71%--mid
               |          |          
               |          |--28.57%--leaf2
               |          |          
               |          |--21.43%--rec
               |          |          |          
               |          |          |--14.29%--leaf1
               |          |          |          
               |          |           --7.14%--leaf2
               |          |          
               |          |--21.43%--leaf1
               |          |          
               |           --7.14%--0x70001234
               |          
                --7.14%--leaf2

    85.71%     7.14%  prog     a                 [.] mid
            |          
            |--78.57%--mid
            |          |          
            |          |--28.57%--leaf2
            |          |          
            |          |--21.43%--rec
            |          |          |          
            |          |          |--14.29%--leaf1
            |          |          |          
            |          |           --7.14%--leaf2
            |          |          
            |          |--21.43%--leaf1
            |          |          
            |           --7.14%--0x70001234
            |          
             --7.14%--main
                       mid
"[1..];
    let end = got.find("    42.86%").expect("the row behind");
    assert_eq!(got[..end].trim_end(), expected.trim_end(), "{got}");
}

#[test]
fn an_unresolved_leaf_has_a_row_by_file_offset_and_one_by_address() {
    let got = rows(&family(), &options("none"));
    let unresolved: Vec<&str> = got.lines().filter(|line| line.contains("0x")).collect();
    assert_eq!(
        unresolved,
        [
            "     7.14%     7.14%  prog     a                 [.] 0x0000000000001234",
            "     7.14%     0.00%  prog     a                 [.] 0x0000000070001234",
        ]
    );
}

#[test]
fn the_whole_of_a_flat_report() {
    let mut builder = ProfileBuilder::default();
    builder.sample("prog", "leaf1;main", 750);
    builder.sample("prog", "schedule@[kernel.kallsyms];main", 250);
    let mut profile = builder.finish();
    profile.quality.events = index_vec![of_event(
        2,
        &[(StackEnd::Complete, 900), (StackEnd::DumpTooShort, 100),]
    )];
    profile.quality.dumps = vec!["jit-7.dump: 12 functions, same clock".to_owned()];
    profile.quality.kernel = "kallsyms beside the recording".to_owned();
    let expected = "\
# To display the perf.data header info, please use --header/--header-only options.
#
#
# Total Lost Samples: 0
#
# Quality: 90.00% in complete stacks, 0.00% unresolved, 0 lost; JIT: jit-7.dump: 12 functions, same clock; \
         kernel symbols: kallsyms beside the recording
#
# Samples: 2  of event 'cycles'
# Event count (approx.): 1000
#
# Overhead  Command  Shared Object      Symbol      
# ........  .......  .................  ............
#
    75.00%  prog     a                  [.] leaf1
    25.00%  prog     [kernel.kallsyms]  [k] schedule


#
";
    let got = text(&profile, &flat());
    let (report, tip) = got.split_once("# (").expect("a tip");
    assert_eq!(report, expected);
    assert!(tip.ends_with(")\n#\n"));
}

#[test]
fn one_way_is_drawn_without_shares_and_without_the_row_itself_when_rows_are_symbols() {
    let mut builder = ProfileBuilder::default();
    builder.sample("prog", "leaf;mid;main", 100);
    let profile = builder.finish();
    let callee = ReportOptions {
        rows: RowOptions {
            children: false,
            ..options("callee").rows
        },
        ..options("callee")
    };
    let whole = &"
   100.00%  prog     a              [.] leaf
            |
            ---leaf
               mid
               main"[1..];
    assert_eq!(rows(&profile, &callee), whole);
    let by_symbol = &"
   100.00%  [.] leaf
            |
            ---mid
               main"[1..];
    assert_eq!(rows(&profile, &sorted_by("sym", callee.clone())), by_symbol);
    let limited = ReportOptions {
        rows: RowOptions {
            children: false,
            ..options("callee,0.5,2").rows
        },
        ..options("callee,0.5,2")
    };
    assert!(rows(&profile, &limited).ends_with("---leaf\n               mid"));
}

#[test]
fn chains_that_only_repeat_the_row_leave_no_blank_line() {
    let mut builder = ProfileBuilder::default();
    builder.sample("prog", "main", 100);
    let profile = builder.finish();
    let by_symbol = sorted_by(
        "sym",
        ReportOptions {
            rows: RowOptions {
                children: false,
                ..options("callee").rows
            },
            ..options("callee")
        },
    );
    assert_eq!(rows(&profile, &by_symbol), "   100.00%  [.] main");
}

#[test]
fn fractal_shares_are_of_the_parent_and_the_rest_is_told() {
    let mut builder = ProfileBuilder::default();
    let names = ["a1", "a2", "a3"];
    names.iter().for_each(|name| {
        (0..3).for_each(|_| builder.sample("prog", &format!("leaf;{name};main"), 100))
    });
    builder.sample("prog", "leaf;other", 100);
    let profile = builder.finish();
    let got = rows(
        &profile,
        &ReportOptions {
            rows: RowOptions {
                children: false,
                ..options("fractal,callee,0.5,2").rows
            },
            ..options("fractal,callee,0.5,2")
        },
    );
    let expected = &"
   100.00%  prog     a              [.] leaf
            |
            ---leaf
               |          
               |--30.00%--a3
               |          main
               |          
               |--30.00%--a2
               |          main
                --40.00%--[...]"[1..];
    assert_eq!(got, expected);
}

#[test]
fn flat_and_folded_print_chain_after_chain() {
    let mut builder = ProfileBuilder::default();
    builder.sample("prog", "leaf;mid;main", 200);
    builder.sample("prog", "leaf;main", 100);
    let profile = builder.finish();
    let folded = rows(
        &profile,
        &ReportOptions {
            rows: RowOptions {
                children: false,
                ..options("folded,callee").rows
            },
            ..options("folded,callee")
        },
    );
    assert_eq!(
        folded,
        "   100.00%  prog     a              [.] leaf\n66.67% leaf;mid;main\n33.33% leaf;main"
    );
    let flat = rows(
        &profile,
        &ReportOptions {
            rows: RowOptions {
                children: false,
                ..options("flat,caller,count").rows
            },
            ..options("flat,caller,count")
        },
    );
    let expected = "   100.00%  prog     a              [.] leaf\n           1\n                main\n                mid\n                \
                    leaf\n\n           1\n                main\n                leaf";
    assert_eq!(flat, expected);
}

#[test]
fn recursion_is_credited_once_and_its_tree_keeps_every_level() {
    let mut builder = ProfileBuilder::default();
    builder.sample("prog", "rec;rec;rec;main", 100);
    let got = rows(&builder.finish(), &options("caller"));
    let expected = &"
   100.00%   100.00%  prog     a              [.] rec
            |
            ---main
               rec
               rec
               rec

   100.00%     0.00%  prog     a              [.] main
            |
            ---main
               rec
               rec
               rec"[1..];
    assert_eq!(got, expected);
}

#[test]
fn inlined_frames_are_marked_and_kept_apart_from_real_ones() {
    let mut builder = ProfileBuilder::default();
    builder.sample("prog", "inner(inlined);outer;main", 100);
    let got = rows(
        &builder.finish(),
        &ReportOptions {
            rows: RowOptions {
                children: false,
                ..options("callee").rows
            },
            ..options("callee")
        },
    );
    assert!(
        got.contains("---inner (inlined)\n               outer\n               main"),
        "{got}"
    );
}

#[test]
fn small_rows_are_hidden_but_still_make_columns_wide() {
    let mut builder = ProfileBuilder::default();
    builder.sample("prog", "big", 99);
    builder.sample("prog", "with_a_much_longer_name", 1);
    let profile = builder.finish();
    let got = text(
        &profile,
        &ReportOptions {
            rows: RowOptions {
                percent_limit: 5.0,
                ..flat().rows
            },
            ..flat()
        },
    );
    assert!(
        got.contains("# ........  .......  .............  ...........................\n"),
        "{got}"
    );
    assert!(
        got.contains("    99.00%  prog     a              [.] big\n\n\n"),
        "{got}"
    );
}

#[test]
fn separators_keep_the_padding_and_are_replaced_in_names() {
    let mut builder = ProfileBuilder::default();
    builder.sample("prog", "f(int,char)", 100);
    let got = text(
        &builder.finish(),
        &ReportOptions {
            layout: LayoutOptions {
                separator: Some(",".to_owned()),
                ..flat().layout
            },
            columns: ColumnOptions {
                show_samples: true,
                ..flat().columns
            },
            ..flat()
        },
    );
    assert!(
        got.contains("# Overhead,     Samples,Command,Shared Object,Symbol         \n"),
        "{got}"
    );
    assert!(
        got.contains("\n 100.00%,           1,prog   ,a            ,[.] f(int.char)\n")
            || got.contains("\n 100.00%, 1          ,prog   ,a            ,[.] f(int.char)\n"),
        "{got}"
    );
}

#[test]
fn given_widths_cut_names() {
    let mut builder = ProfileBuilder::default();
    builder.sample("averylongname", "function", 100);
    let widths = ReportOptions {
        layout: LayoutOptions {
            column_widths: vec![0, 5, 0, 8],
            ..flat().layout
        },
        ..flat()
    };
    assert_eq!(
        rows(&builder.finish(), &widths),
        "   100.00%  avery  a              [.] func"
    );
}

#[test]
fn a_filter_with_one_entry_takes_its_column_away() {
    let profile = family();
    let one = ReportOptions {
        filters: RowFilters {
            samples: SampleFilter {
                dsos: Some(vec!["a".to_owned()]),
                ..SampleFilter::default()
            },
            ..flat().filters
        },
        ..flat()
    };
    let got = text(&profile, &one);
    assert!(
        got.contains("#\n# dso: a\n#\n# Total Lost Samples: 0\n")
            && got.contains("# Overhead  Command  Symbol"),
        "{got}"
    );
    let all = sorted_by(
        "sym",
        ReportOptions {
            filters: RowFilters {
                samples: SampleFilter {
                    symbols: Some(vec!["mid".to_owned()]),
                    ..SampleFilter::default()
                },
                ..flat().filters
            },
            ..flat()
        },
    );
    assert!(
        text(&profile, &all).contains("# Overhead  Symbol"),
        "nothing else would be left"
    );
}

#[test]
fn hidden_samples_stay_in_the_total_unless_shares_are_relative() {
    let profile = family();
    let absolute = sorted_by(
        "sym",
        ReportOptions {
            filters: RowFilters {
                samples: SampleFilter {
                    symbols: Some(vec!["mid".to_owned(), "main".to_owned()]),
                    ..SampleFilter::default()
                },
                ..flat().filters
            },
            ..flat()
        },
    );
    assert_eq!(
        rows(&profile, &absolute),
        "     7.14%  [.] main\n     7.14%  [.] mid"
    );
    let relative = ReportOptions {
        rows: RowOptions {
            relative: true,
            ..absolute.rows.clone()
        },
        ..absolute
    };
    assert_eq!(
        rows(&profile, &relative),
        "    50.00%  [.] main\n    50.00%  [.] mid"
    );
    assert!(text(&profile, &relative).contains("# Samples: 2  of event"));
}

#[test]
fn events_follow_each_other_and_groups_share_a_table() {
    let mut builder = ProfileBuilder::default();
    builder.sample("prog", "f;main", 3000);
    builder.add_event("faults");
    builder.event = crate::profile::EventId(1);
    builder.sample("prog", "f;main", 1);
    builder.sample("prog", "g;main", 3);
    let mut profile = builder.finish();
    let separate = text(&profile, &flat());
    assert!(
        separate.contains("of event 'cycles'")
            && separate.contains("\n\n\n# Samples: 2  of event 'faults'"),
        "{separate}"
    );
    profile.events[1].leader = crate::profile::EventId(0);
    let joined = text(&profile, &flat());
    assert!(joined.contains(
        "# Samples: 3  of events 'anon group { cycles, faults }'\n# Event count (approx.): 3004"
    ));
    assert!(joined.contains("#         Overhead  Command"), "{joined}");
    assert!(joined.contains("   100.00%  25.00%  prog     a              [.] f\n     0.00%  75.00%  prog     a              [.] g\n"));
    let apart = text(
        &profile,
        &ReportOptions {
            rows: RowOptions {
                group: Grouping::Separate,
                ..flat().rows
            },
            ..flat()
        },
    );
    assert!(
        apart.contains("# Samples: 1  of events 'cycles'") && apart.contains("of event 'faults'"),
        "{apart}"
    );
}

#[test]
fn a_hierarchy_sums_its_levels_and_says_where_nothing_is_large_enough() {
    let mut builder = ProfileBuilder::default();
    builder.sample("prog", "f", 60);
    builder.sample("prog", "g", 20);
    (0..4).for_each(|i| builder.sample("prog", &format!("h{i}@b"), 5));
    let tree = ReportOptions {
        rows: RowOptions {
            hierarchy: true,
            percent_limit: 10.0,
            ..sorted_by("dso,sym", flat()).rows
        },
        ..sorted_by("dso,sym", flat())
    };
    let got = text(&builder.finish(), &tree);
    let expected = "\
#    Overhead  Shared Object / Symbol
# ...........  ......................
#
    80.00%     a            
       60.00%     [.] f
       20.00%     [.] g
    20.00%     b            
                  no entry >= 10.00%
";
    assert!(got.contains(expected), "{got}");
}

#[test]
fn shares_are_coloured_only_when_asked_for() {
    let mut builder = ProfileBuilder::default();
    builder.sample("prog", "f", 9850);
    builder.sample("prog", "g", 100);
    builder.sample("prog", "h", 50);
    let profile = builder.finish();
    let coloured = rows(
        &profile,
        &ReportOptions {
            layout: LayoutOptions {
                color: true,
                ..flat().layout
            },
            ..flat()
        },
    );
    let starts: Vec<&str> = coloured
        .lines()
        .map(|line| line.split("prog").next().unwrap_or_default())
        .collect();
    assert_eq!(
        starts,
        [
            "  \x1b[31m  98.50%\x1b[m  ",
            "  \x1b[32m   1.00%\x1b[m  ",
            "     0.50%  "
        ]
    );
    assert!(!rows(&profile, &flat()).contains('\x1b'));
}

#[test]
fn names_cannot_steer_the_terminal() {
    let mut builder = ProfileBuilder::default();
    builder.sample("pr\x1b[2Jog", "f\x07;main", 100);
    let got = text(&builder.finish(), &options("caller"));
    assert!(
        !got.contains(['\x1b', '\x07']) && got.contains("pr\\x1b[2Jog") && got.contains("f\\x07"),
        "{got}"
    );
}

#[test]
fn exact_fields_and_the_order_of_keys() {
    let profile = family();
    let fields = FieldSpec::parse("sym,overhead").expect("known fields");
    let by_name = ReportOptions {
        columns: ColumnOptions {
            fields: Some(fields),
            ..flat().columns
        },
        ..flat()
    };
    let names: Vec<String> = rows(&profile, &by_name)
        .lines()
        .map(|line| line.trim().to_owned())
        .collect();
    assert_eq!(names[0], "[.] leaf1                 35.71%");
    assert_eq!(
        names.last().map(String::as_str),
        Some("[.] 0x0000000000001234     7.14%")
    );
}

#[test]
fn chains_can_be_cut_reversed_and_limited() {
    let mut builder = ProfileBuilder::default();
    builder.sample("prog", "leaf;b;c;main", 100);
    let profile = builder.finish();
    let cut = ReportOptions {
        chains: ChainOptions {
            max_stack: 2,
            ..options("caller").chains
        },
        rows: RowOptions {
            children: false,
            ..options("caller").rows
        },
        ..options("caller")
    };
    assert!(rows(&profile, &cut).ends_with("---main\n               c"));
    assert_eq!(
        options("caller").chains.call_graph.order,
        Some(ChainOrder::Caller)
    );
    assert_eq!(options("none").chains.call_graph.mode, CallGraphMode::None);
}

#[test]
fn every_sample_is_in_the_total_of_its_event() {
    let profile = family();
    let options = options("caller");
    let report = build(&profile, &options).expect("the profile has samples");
    let total: u64 = report.tables[0]
        .rows
        .iter()
        .map(|row| row.counts.self_period)
        .sum();
    assert_eq!(total, 14_000);
    assert_eq!(report.tables[0].totals, [14_000]);
    assert_eq!(profile.stacks.get(StackId::from_usize(0)).len(), 1);
}

#[test]
fn the_quality_line_tells_recorded_stacks_from_walked_ones() {
    let mut profile = family();
    let line = |profile: &Profile, event| quality_line(profile, event);
    assert_eq!(line(&profile, None), "Quality: 0.00% unresolved, 0 lost");
    profile.quality.events = index_vec![of_event(1, &[(StackEnd::Recorded, 5)])];
    profile.recording.lost_chunks = 2;
    assert_eq!(
        line(&profile, None),
        "Quality: stacks as recorded, 0.00% unresolved, 0 lost, 2 chunks lost"
    );
    // A tracepoint with many samples, of which all have a name and a stack.
    let mut tracepoint = of_event(9, &[(StackEnd::Complete, 9)]);
    tracepoint.ends[StackEnd::Complete] = 9;
    profile.quality.events.push(tracepoint);
    profile.quality.events[EventId(0)].unresolved_samples = 1;
    assert_eq!(
        line(&profile, Some(EventId(0))),
        "Quality: stacks as recorded, 100.00% unresolved, 0 lost, 2 chunks lost"
    );
    assert_eq!(
        line(&profile, Some(EventId(1))),
        "Quality: 100.00% in complete stacks, 0.00% unresolved, 0 lost, 2 chunks lost"
    );
    assert!(line(&profile, None).contains("10.00% unresolved"));
}

/// What is known of so many samples of an event, whose stacks ended so.
fn of_event(samples: u64, periods: &[(StackEnd, u64)]) -> EventQuality {
    let mut quality = EventQuality {
        samples,
        ..EventQuality::default()
    };
    for (end, period) in periods {
        quality.periods[*end] = *period;
    }
    quality
}

/// A function that its file calls data lies elsewhere in memory than in the file.
#[test]
fn rows_of_data_tell_the_distance_from_its_start() {
    let mut builder = ProfileBuilder::default();
    let leaf = builder.frame("table");
    builder.sample_at("app", leaf, &[leaf], 1);
    let mut profile = builder.finish();
    profile
        .symbols
        .iter_mut()
        .for_each(|symbol| symbol.is_data = true);
    profile.frames[leaf].address.0 += 4;
    profile.frames[leaf].object_address.0 += 4;
    let rows = rows(&profile, &flat());
    assert!(rows.ends_with("[.] table+0x4"), "{rows}");
}

#[test]
fn comms_that_differ_in_numbers_alone_are_one_row() {
    let mut builder = ProfileBuilder::default();
    for comm in [
        "kworker/0:1",
        "kworker/12:7H",
        "kworker/3:25",
        "kworker",
        "7z",
    ] {
        builder.sample(comm, "f", 20);
    }
    let got = text(&builder.finish(), &sorted_by("comm_nodigit", flat()));
    let expected = "\
# Overhead  CommandNoDigit
# ........  ................
#
    40.00%  kworker/<N>:<N>
    20.00%  <N>z
    20.00%  kworker
    20.00%  kworker/<N>:<N>H
";
    assert!(trimmed(&got).contains(expected), "{got}");
}

#[test]
fn an_address_is_that_of_the_process_also_of_callers() {
    let mut builder = ProfileBuilder::default();
    builder.sample("prog", "0x70000010;0x70000020", 70);
    builder.sample("prog", "0x70000020", 20);
    builder.sample("prog", "0xffffffff81000000", 10);
    let profile = builder.finish();
    let with_callers = sorted_by("addr", options("none"));
    let expected = "
    90.00%    20.00%  0x70000020
    70.00%    70.00%  0x70000010
    10.00%    10.00%  0xffffffff81000000";
    assert_eq!(trimmed(&rows(&profile, &with_callers)), expected[1..]);
}

/// Lines without blanks at their ends.
fn trimmed(text: &str) -> String {
    let lines = text.lines().map(str::trim_end);
    lines.collect::<Vec<_>>().join("\n")
}
