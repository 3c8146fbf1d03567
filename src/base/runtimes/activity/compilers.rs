//! Compilers as programs and libraries: rustc, LLVM, clang.

use super::Activity;

pub(super) const ROWS: &[Activity] = &[
    Activity::new(
        2,
        "LLVM",
        r"^(LLVM|llvm::)|\(anonymous\ namespace\)::.*(Pass|Machine|Select|DAG|Combine|Inst|Reg)",
    ),
    Activity::new(
        2,
        "type checking",
        r"^rustc_(hir_typeck|hir_analysis|infer|trait_selection|ty_utils|next_trait)|^<rustc_(hir_typeck|
            hir_analysis|infer|trait_selection)",
    ),
    Activity::new(
        2,
        "borrow checking and MIR",
        r"^<?rustc_(borrowck|mir_|const_eval|mir_build|mir_transform|mir_dataflow|pattern_analysis)",
    ),
    Activity::new(
        2,
        "parsing and expansion",
        r"^<?rustc_(parse|lexer|expand|builtin_macros|ast|resolve)",
    ),
    Activity::new(
        2,
        "code generation",
        r"^<?rustc_(codegen|monomorphize|symbol_mangling)",
    ),
    Activity::new(2, "metadata", r"^<?rustc_(metadata|incremental|serialize)"),
    Activity::new(2, "queries", r"^<?rustc_(query|middle|data_structures)"),
    Activity::new(2, "linking", r"^(lld::|gold::|bfd_|elf_link|_bfd)"),
];
