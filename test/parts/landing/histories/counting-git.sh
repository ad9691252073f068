#!/bin/sh
# Comes first on PATH, so mailchute calls it as git: counts its calls, and kills at those that the seed has chosen. $HISTORY/kills/<call>
# holds "<moment> <victims>". The agents, the checks and the person use $GIT.
[ -z "$BROKEN_GIT" ] || . "$BROKEN_GIT"
[ -d "$HISTORY/kills" ] || exec "$GIT" "$@"
echo x >> "$HISTORY/calls"
call=$(($(wc -l < "$HISTORY/calls")))
[ -e "$HISTORY/kills/$call" ] || exec "$GIT" "$@"
read -r moment victims < "$HISTORY/kills/$call"
rm -f "$HISTORY/kills/$call"
rmdir "$HISTORY/kills" 2>/dev/null
echo "$call $moment $victims" >> "$HISTORY/killed"
end() {
  case $victims in
    worker) kill -KILL "$PPID" ;;
    all) kill -KILL "$PPID" "$(cat "$HISTORY/supervisor")" ;;
    git) [ "$moment" = during ] || kill -KILL $$ ;;
  esac
}
case $moment in
  before) end; exit 1 ;;
  during)
    "$GIT" "$@" <&0 & child=$!
    sleep "0.00$((call % 8))"
    end; kill -KILL $child 2>/dev/null; kill -KILL $$ ;;
  after) "$GIT" "$@"; code=$?; end; exit $code ;;
esac
