#!/bin/bash
# Usage: heap.sh OUT [BLOCKS]
#
# Builds tests/programs/alloc.c below OUT/heap and records it to OUT/heap.data: each call of glibc's allocator, its
# return and each free, with 1 KB of stack. 235000 blocks (default) give 700 000 samples in about 900 MB. Needs root
# for the probes. PJIT names the binary.
set -eu
case "${1-}" in '' | -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/heap"
out=$(cd "$1" && pwd)
cc -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread -o "$out/heap/alloc" "$here/../../tests/programs/alloc.c"
cd "$out/heap"
"${PJIT:-pjit}" record -q --live --no-z --call-graph dwarf,1024 -o recorded -- ./alloc "${2-235000}"
mv recorded/perf.data "$out/heap.data"
rm -r recorded
ls -l "$out/heap.data"
