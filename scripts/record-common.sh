# Used by profile-benchmark, which sources it: options, checks of this machine, the recording itself.
# Plain sh. Nothing here changes a setting; where one is in the way, the command that changes it is printed.

say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() { say "$*"; exit 2; }

usage() { sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; }

# Sets out, frequency, stack, callgraph, dry; leaves the number of arguments used in `used`.
parse_options() {
  out=profile frequency=499 stack=32768 callgraph=dwarf dry=
  used=0
  while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage; exit 0 ;;
    -n | --dry-run) dry=1; shift; used=$((used + 1)); continue ;;
    --fp) callgraph=fp; shift; used=$((used + 1)); continue ;;
    --) used=$((used + 1)); return ;;
    -o | -F | -s) ;;
    -*) die "unknown option $1 (--help shows all)" ;;
    *) return ;;
    esac
    [ $# -gt 1 ] || die "$1 needs a value"
    case $1 in
    -o) out=$2 ;;
    -F) frequency=$2 ;;
    -s) stack=$2 ;;
    esac
    shift 2
    used=$((used + 2))
  done
}

is_number() { case $1 in '' | *[!0-9]*) return 1 ;; esac; }

setting() { cat "/proc/sys/kernel/$1" 2>/dev/null || echo 0; }

# May this user record everything, as far as one can tell without trying?
is_privileged() { [ "$(id -u)" -eq 0 ]; }

check_options() {
  is_number "$frequency" && [ "$frequency" -gt 0 ] || die "-F $frequency: not a number of samples per second"
  is_number "$stack" || die "-s $stack: not a number of bytes"
  [ $((stack % 8)) -eq 0 ] && [ "$stack" -ge 8 ] && [ "$stack" -le 65528 ] ||
    die "-s $stack: the kernel copies 8 to 65528 bytes of stack, in multiples of 8"
  [ "$stack" -ge 8192 ] || say "note: $stack bytes of stack are few; deep stacks will be cut (-s 32768)"
}

check_machine() {
  command -v perf >/dev/null 2>&1 ||
    die "no perf on PATH; on Debian and Ubuntu: apt install linux-perf (or linux-tools-\$(uname -r))"
  paranoid=$(setting perf_event_paranoid)
  restrict=$(setting kptr_restrict)
  rate=$(setting perf_event_max_sample_rate)
  if ! is_privileged; then
    [ "$paranoid" -le 2 ] ||
      die "perf_event_paranoid is $paranoid: only root may record. Run as root, or: sysctl kernel.perf_event_paranoid=1"
    [ "$paranoid" -le 1 ] ||
      say "note: perf_event_paranoid is $paranoid: kernel frames are left out. To have them: sysctl kernel.perf_event_paranoid=1"
    [ "$restrict" -eq 0 ] ||
      say "note: kptr_restrict is $restrict: kernel functions have no names. To have them: sysctl kernel.kptr_restrict=0"
  elif [ "$restrict" -gt 1 ]; then
    say "note: kptr_restrict is $restrict: kernel functions have no names, for root either. To have them: sysctl kernel.kptr_restrict=1"
  fi
  [ "$rate" -eq 0 ] || [ "$frequency" -le "$rate" ] ||
    say "note: the kernel takes at most $rate samples per second now: sysctl kernel.perf_event_max_sample_rate=$frequency"
  [ -w . ] || die "$(pwd) is not writable, but the runtime writes its jit-PID.dump there; run from another directory"
}

# Sets clock to the option that puts perf on the clock of jitdumps, if this perf and kernel can.
check_clock() {
  scratch=$(mktemp) || die "no temporary file"
  clock='-k mono'
  if ! perf record -q -k mono -o "$scratch" true >/dev/null 2>&1; then
    clock=
    if ! reason=$(perf record -q -o "$scratch" true 2>&1 >/dev/null); then
      rm -f "$scratch" "$scratch.old"
      die "perf cannot record here: $(printf '%s' "$reason" | sed '/^ *$/d' | head -3 | tr '\n' ' ')"
    fi
    say "note: perf record -k mono does not work here; pjit will estimate the clock of the dump"
  fi
  rm -f "$scratch" "$scratch.old"
}

# Records "$@" into $out and gathers beside it what a report needs on any machine.
record() {
  options="$clock -F $frequency"
  case $callgraph in
  dwarf) options="$options --call-graph dwarf,$stack" ;;
  *) options="$options --call-graph $callgraph" ;;
  esac
  if [ -n "$dry" ]; then
    say "would run: ${environment:+$environment }perf record $options -o $out/perf.data -- $*"
    exit 0
  fi
  mkdir -p "$out" || die "cannot make the folder $out"
  stamp=$(mktemp) || die "no temporary file"
  status=0
  # The options have no blanks of their own.
  # shellcheck disable=SC2086
  perf record $options -o "$out/perf.data" -- "$@" || status=$?
  gather
  rm -f "$stamp"
  [ -s "$out/perf.data" ] || die "nothing was recorded"
  say "recorded into $out/perf.data; look at it with: pjit report $out/perf.data"
  exit "$status"
}

# Dumps and perf maps of this run, and the kernel's symbols, so that the folder can be taken elsewhere.
gather() {
  dumps=0
  for dump in jit-*.dump; do
    [ -f "$dump" ] && [ "$dump" -nt "$stamp" ] || continue
    dumps=$((dumps + 1))
    [ "$dump" -ef "$out/$dump" ] || mv -f "$dump" "$out/"
    # V8 logs to these as soon as it writes dumps.
    pid=${dump#jit-} pid=${pid%.dump}
    rm -f isolate-0x*-"$pid"-v8.log
  done
  for map in /tmp/perf-*.map; do
    [ -f "$map" ] && [ -O "$map" ] && [ "$map" -nt "$stamp" ] && cp "$map" "$out/"
  done
  if [ "$(awk '$3 == "_text" || $3 == "_stext" { print $1; exit }' /proc/kallsyms 2>/dev/null | tr -d 0)" ]; then
    cat /proc/kallsyms | gzip -c >"$out/kallsyms.gz"
  fi
  [ "$dumps" -gt 0 ] || say "$no_dumps"
}
