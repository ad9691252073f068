# The `git` that counting-git.ts writes reads this. It counts its calls while $COUNTED/kills is there, and kills at those that a test has
# chosen: $COUNTED/kills/<call>, or kills/named for the <nth> call with the words of kills/words, holds "<moment> <victim> <step>".
[ -z "$BROKEN_GIT" ] || . "$BROKEN_GIT"
[ -d "$COUNTED/kills" ] || exec "$REAL_GIT" "$@"
if [ -e "$COUNTED/until" ]; then
  read -r until < "$COUNTED/until"
  [ ! -e "$until" ] || exec "$REAL_GIT" "$@"
fi
call=$(($(ls "$COUNTED/calls" | wc -l) + 1))
# A number of its own also for calls at the same time.
while ! mkdir "$COUNTED/calls/$call" 2>/dev/null; do call=$((call + 1)); done
# What differs from run to run has one name.
words=$(printf '%s' "$*" | tr '\n' ' ' | sed -E 's/[0-9a-f]{40,}/COMMIT/g; s#(^| |=)/[^ ]*#\1PATH#g; s/ +$//')
printf '%s\n' "$words" > "$COUNTED/calls/$call/words"

# Calls that change names in a folder: between two of them git is killed.
STEPS=rename,renameat,renameat2,link,linkat,unlink,unlinkat,rmdir,mkdir,mkdirat,symlink,symlinkat
if [ -e "$COUNTED/steps" ]; then
  strace -f -qq -o "$COUNTED/calls/$call/steps" -e trace=$STEPS "$REAL_GIT" "$@"
  exit $?
fi

order=$COUNTED/kills/$call
if [ -e "$COUNTED/kills/words" ]; then
  read -r nth wanted < "$COUNTED/kills/words"
  case " $words " in
    *" $wanted "*)
      count=1
      while ! mkdir "$COUNTED/named/$count" 2>/dev/null; do count=$((count + 1)); done
      [ "$count" -ne "$nth" ] || order=$COUNTED/kills/named ;;
  esac
fi
# One call has it, also of those at the same time.
mv "$order" "$COUNTED/calls/$call/kill" 2>/dev/null || exec "$REAL_GIT" "$@"
read -r moment victim step < "$COUNTED/calls/$call/kill"
# After the last one nothing is counted.
rm -f "$COUNTED/kills/words"; rmdir "$COUNTED/kills" 2>/dev/null
kill_caller() {
  case $victim in
    caller) kill -KILL "$PPID" ;;
    all) kill -KILL "$PPID" "$(cat "$COUNTED/also")" ;;
  esac
}
case $moment in
  before) kill_caller; kill -KILL $$ ;;
  during)
    "$REAL_GIT" "$@" <&0 & child=$!
    sleep "0.00$((call % 8))"
    kill_caller; kill -KILL $child 2>/dev/null; kill -KILL $$ ;;
  within)
    # rename:3 is the third rename, and 3 the third call of any name, as strace counts.
    case $step in *:*) names=${step%:*} ;; *) names=$STEPS ;; esac
    strace -f -o "$COUNTED/calls/$call/within" -e trace=$STEPS -e "inject=$names:signal=KILL:when=${step#*:}" "$REAL_GIT" "$@"
    code=$?
    grep -q 'killed by SIGKILL' "$COUNTED/calls/$call/within" || exit $code
    : > "$COUNTED/calls/$call/killed"
    kill_caller; kill -KILL $$ ;;
  after) "$REAL_GIT" "$@"; code=$?; kill_caller; [ "$victim" != git ] || kill -KILL $$; exit $code ;;
esac
