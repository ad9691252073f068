#!/bin/sh
# program.sh TRACE WHAT SECONDS: a task's program under chaos. WHAT: ok | fail (for good) | third (fails until its third
# run) | family (leaves a child and one in a session of its own behind when it is killed).
echo "start $MAILCHUTE_TASK_ID $MAILCHUTE_ATTEMPT $MAILCHUTE_LEASE" >> "$1"
if [ "$2" = family ]; then
  sleep 600 & child=$!
  setsid sleep 600 & apart=$!
fi
[ "$3" = 0 ] || sleep "$3"
if [ "$2" = family ]; then
  kill $child $apart
  wait
fi
[ "$2" = fail ] && exit 65
[ "$2" = third ] && [ "$MAILCHUTE_ATTEMPT" -lt 3 ] && exit 1
echo "end $MAILCHUTE_TASK_ID $MAILCHUTE_ATTEMPT $MAILCHUTE_LEASE" >> "$1"
exit 0
