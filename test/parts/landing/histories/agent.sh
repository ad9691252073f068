# One run of an agent: does what the seed has decided for this run, and writes down what its worktree holds. $HISTORY is outside of it.
# What it writes down after a "begin" counts only from the next "noted" on, because a kill in between leaves neither the old nor the new state.
g() { "$GIT" -c user.name=agent -c user.email=agent@example.invalid -c commit.gpgSign=false "$@" >/dev/null 2>&1; }
ask() { "$GIT" "$@" 2>/dev/null; }
id=$MAILCHUTE_TASK_ID
echo x >> "$HISTORY/runs/$id"
run=$(($(wc -l < "$HISTORY/runs/$id")))
notes=$HISTORY/held/$(date +%s%N).$id
own=mailchute/${id%.fix-*}
count=0
write() { echo "$*" >> "$notes"; }
token() { count=$((count + 1)); echo "tok-$id.$$.$count"; }
write "task ${id%.fix-*}"

# Each is one action.
edit() { token >> "$1"; }
top() { { token; cat "$1"; } > .new-text && mv .new-text "$1"; }
drop() { rm -f "$1"; }
stage() { g add -A; }
commit() { g add -A; g commit -m "$id $(token)" && write "made commit $(ask rev-parse HEAD)"; true; }
commit_staged() { g commit -m "$id $(token)" && write "made commit $(ask rev-parse HEAD)"; true; }
amend() { [ "$(ask log -1 --format=%an)" = agent ] || return 0; g add -A; g commit --amend --no-edit && write "made commit $(ask rev-parse HEAD)"; true; }
stash() {
  before=$(ask rev-parse -q --verify refs/stash)
  g stash push -u
  now=$(ask rev-parse -q --verify refs/stash)
  # Another agent may have made the newest one: only one that was made here counts.
  if [ "$now" != "$before" ] && ask log -1 --format=%s "$now" | grep -q " on $own: "; then write "made stash $now"; fi
}
detach() { g checkout --detach; true; }
back() { g checkout "$own"; true; }
branch() { g checkout -b "agent-$id-$$"; true; }
switch() { g checkout -b "other-$id-$$"; commit; back; true; }
stop_merge() { g checkout --detach; edit "$1"; commit; side=$(ask rev-parse HEAD); g checkout "$own"; edit "$1"; commit; g merge "$side"; true; }
bring_target() { g merge -m "merge $(token)" "$TARGET" || { g checkout --theirs . ; g add -A; g commit -m "merge $(token)"; }; true; }
mend() {
  back
  g rebase "$TARGET" && return
  for step in 1 2 3 4 5 6; do
    g checkout --theirs . ; g add -A
    GIT_EDITOR=true "$GIT" -c user.name=agent -c user.email=agent@example.invalid rebase --continue >/dev/null 2>&1 && break
  done
  [ ! -d "$(ask rev-parse --git-path rebase-merge)" ] || g rebase --abort
  true
}
calm() { rm -f clash-*; edit "mended-$id.txt"; }

note() {
  write "held commit $(ask rev-parse HEAD)"
  tree=$(ask write-tree) && write "held index $tree"
  index=$HISTORY/index.$$
  cp "$(ask rev-parse --git-path index)" "$index"
  GIT_INDEX_FILE=$index "$GIT" add -A >/dev/null 2>&1
  tree=$(GIT_INDEX_FILE=$index "$GIT" write-tree 2>/dev/null) && write "held files $tree"
  rm -f "$index"
  for file in *.log; do [ ! -f "$file" ] || write "held ignored $(ask hash-object -w "$file")"; done
  write "noted $(ask symbolic-ref -q --short HEAD)"
}
pause() { note; sleep "$1"; write begin; }
finish() { note; write "ended $1"; exit "$1"; }

write begin
if [ -e "$HISTORY/scripts/$id.$run" ]; then . "$HISTORY/scripts/$id.$run"; fi
finish 0
