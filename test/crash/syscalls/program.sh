#!/bin/sh
# program.sh TRACE WHAT: a task's program. WHAT: ok | second (fails in its first run). Says so when an earlier run of its task is still there.
started() { cut -d' ' -f22 "/proc/$1/stat" 2>/dev/null; }
while read -r word id pid ticks; do
  [ "$word $id" = "start $MAILCHUTE_TASK_ID" ] || continue
  [ "$(started "$pid")" = "$ticks" ] && [ "$(cut -d' ' -f3 "/proc/$pid/stat")" != Z ] &&
    echo "overlap $MAILCHUTE_TASK_ID $pid $$" >> "$1"
done < "$1"
echo "start $MAILCHUTE_TASK_ID $$ $(started $$)" >> "$1"
sleep 0.15
[ "$2" = second ] && [ "$MAILCHUTE_ATTEMPT" = 1 ] && exit 1
echo "end $MAILCHUTE_TASK_ID $$" >> "$1"
exit 0
