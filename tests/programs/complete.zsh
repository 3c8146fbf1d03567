# What zsh offers for each line of standard input: `zsh -f complete.zsh`, with the binary in PJIT. Completion works in a terminal
# alone, so that each line is typed into a shell in one, which sources this file first.
if [[ -o interactive ]]; then
  PROMPT=
  autoload -Uz compinit && compinit -u -D
  source <($PJIT completions zsh)
  mark() { print -r -- "<mark>" }
  compprefuncs=(mark) comppostfuncs=(mark exit)
  # Offers are added by this. With these options it fills arrays instead.
  compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
    local -a found
    builtin compadd -A found "$@"
    print -rl -- $found
  }
  print -r -- "<rea""dy>"
  return
fi
zmodload zsh/zpty
this=${0:A}
while read -r line; do
  zpty typist zsh -f -i
  zpty -w typist "source $this"
  zpty -r -m typist got "*<ready>*"
  zpty -w -n typist "$line"$'\t'
  zpty -r -m typist got "*<mark>*<mark>*"
  zpty -d typist
  got=${${got#*<mark>}%%<mark>*}
  print -r -- ${(j: :)${(f)${got//$'\r'/}}}
done
