# The numbers of a report, recomputed from the lines of a state tree. It shares no code with the report.
#
# Run as `jq -nR --slurpfile given given.json -f reader.jq FILES`; FILES are the journals in their order and the open questions. Given are:
# from, to (epoch ms); now (epoch ms); prices; trays: names of files by tray; answered: names; asking: questions of the plan;
# orders, sents, states, records: documents by the id of their task.

def number: select(type == "number");
def objects_of($part): map(select(.file | test($part)) | .value);
def percentile($share): sort | if length == 0 then null else .[(length * $share | ceil) - 1] end;
def sum(f): map(f) | add // 0;
def spread(time): {count: length, first_ms: (map(time) | min), last_ms: (map(time) | max)};

$given[0] as $given
| [inputs | select(test("\\S")) | {file: input_filename, text: ., value: (try fromjson catch null)}] as $all
| ($all | map(select(.file | endswith(".md") | not))) as $journals
| ($journals | map(select((.value | type) == "object"))) as $good
| $given.from as $from | $given.to as $to

# Work on branches.
| ([$given.orders | to_entries[] | .key as $id | .value as $order
    | $given.records[$id] as $record
    | select($record == null or $record.lease == $order.lease)
    | ($id + ".land") as $landing
    | ($given.sents[$id].lease == $order.lease) as $isSent
    | ($given.states[$id] | .lease == $order.lease and .landed == true) as $isNoted
    | {
        id: $id, landing: $landing,
        files: ($order.diffstat.files // 0), insertions: ($order.diffstat.insertions // 0), deletions: ($order.diffstat.deletions // 0),
        state: (
          if $isSent | not then (if $order.land == "branch" then "branch" else "open" end)
          elif $given.trays.failed | index($landing + "_error.json") then "failed"
          elif $given.trays.outbox | index($landing + "_result.json") then "landed"
          elif ($given.trays.inbox | index($landing + ".json")) or ($given.trays.processing | any(startswith($landing + "@"))) then "open"
          elif $isNoted then "landed" else "failed" end)
      }]) as $work
| ($given.orders | keys | map(. + ".land")) as $landings

# Events.
| ($good | objects_of("supervisor_lifecycle") | map(select((.t | type) == "number" and .t < $to))) as $before
| ([$before | map(select(.t >= $from)) | to_entries[] | .value + {i: .key}]) as $lines
| ([$lines | map(select(.event == "completed")) | group_by(.task_id)[] | . as $own | range(length) as $n | $own[$n]
    | . as $close | ($own[:$n] | last // {i: -1}).i as $since
    | ([$lines[$since + 1:$close.i][] | select(.task_id == $close.task_id and (.event == "failed" or .event == "cancelled" or .event == "skipped"))] | last) as $why
    | . + {
        kind: (if ($why.kind // "") != "" then $why.kind else $why.event // "unknown" end),
        is_landing: ([.task_id] - $landings == [])
      }] | sort_by(.i)) as $closes
| ($closes | map(select(.is_landing | not))) as $ofTasks
| ($ofTasks | map(select(.status == "completed"))) as $completed
| ($ofTasks | map(select(.status != "completed"))) as $notCompleted
| ($notCompleted | map(select(.kind != "cancelled" and .kind != "dependency_failed"))) as $fails
| ([$fails | group_by(.task_id)[] | last | . as $fail
    | select([$lines[$fail.i + 1:][] | select(.task_id == $fail.task_id and
        ((.event == "completed" and .status == "completed") or (.event == "selected" and .attempt == 1)))] == [])]) as $failed
| ([$completed[] | . as $close
    | ([$completed[] | select(.task_id == $close.task_id and .i < $close.i) | .i] | max // -1) as $since
    | select(any($fails[]; .task_id == $close.task_id and .i > $since and .i < $close.i))]) as $mended
# Each question takes back the last end of its node.
| (reduce ($lines[] | select(.event == "blocked" or (.event == "completed" and .status == "completed" and ([.task_id] - $landings != [])))) as $line
    ([]; if $line.event == "completed" then . + [$line]
      else ([.[] | select(.task_id == $line.task_id) | .i] | max) as $last | map(select(.i != $last)) end)) as $named
| ([$lines[] | select(.event == "held" and ([.task_id] - $landings != [])) | . as $hold
    | ([$lines[$hold.i + 1:][] | select(.task_id == $hold.task_id and (.event == "assigned" or .event == "completed" or .event == "held")) | .t][0]) as $close
    | {gate: .gate, from: .t, to: $close}]) as $waits
| ($before | map(select(.event == "supervisor_started" or .event == "supervisor_stopped"))) as $starts
| ([$lines[] | select(.event == "worker_stopped") | .t]
    + [range(1; $starts | length) as $n | $starts[$n] | select(.event == "supervisor_started" and $starts[$n - 1].event == "supervisor_started" and .t >= $from) | .t]
    | sort) as $crashes
| ($lines | group_by(.event) | map({key: (.[0].event // "none"), value: length}) | from_entries) as $of

# Costs.
| ($good | objects_of("costs") | map(select(.at * 1000 >= $from and .at * 1000 < $to))
    | group_by([.lease // .run, .session_id])
    # A later line may say that a run has failed after all.
    | map(([.[].outcome | select(. != "completed")][0] // "completed") as $outcome | .[0] + {outcome: $outcome}
      | $given.prices[.model // ""] as $price
      | . + {cost: (.cost_usd_micro // (if $price == null then null else
          ((.input_tokens - .cached_input_tokens) * $price.input_usd + .cached_input_tokens * ($price.cached_input_usd // $price.input_usd)
            + .output_tokens * $price.output_usd | round) end))})) as $costs
| def isUsed: .input_tokens + .output_tokens + (.cost_usd_micro // 0) > 0;
  def bill: {
    runs: length, runs_not_completed: (map(select(.outcome != "completed")) | length),
    input_tokens: sum(.input_tokens), cached_input_tokens: sum(.cached_input_tokens), output_tokens: sum(.output_tokens),
    cost_usd_micro: sum(.cost // 0), runs_without_usage: (map(select(isUsed | not)) | length),
    runs_without_price: (map(select(.cost == null and isUsed)) | length)
  };

# Questions.
($all | map(select(.file | endswith(".md"))) | group_by(.file) | map({
    name: (.[0].file | split("/") | last),
    asked: ([.[].text | select(startswith("asked_at_ms: ")) | ltrimstr("asked_at_ms: ") | tonumber][0]),
    ends: ([.[].text | select(startswith("ends_at_ms: ")) | ltrimstr("ends_at_ms: ") | fromjson][0])
  }) | map(select(.ends == null or .ends > $given.now)) | map(select([.name] - $given.answered != []))) as $questions

| {
  counts: {
    completed: ($named | length), failed: ($failed | length),
    cancelled: ($notCompleted | map(select(.kind == "cancelled")) | length),
    skipped: ($notCompleted | map(select(.kind == "dependency_failed")) | length),
    refused: ($of.quarantined // 0), mended: ($mended | length), retries: ($of.retry_scheduled // 0),
    with_failed_lines: ($of.lines_failed // 0),
    landed: ($closes | map(select(.is_landing and .status == "completed")) | length),
    not_landed: ($work | map(select(.state == "failed")) | length),
    crashes: ($crashes | length), reclaimed: ($of.reclaimed // 0)
  },
  waited_ms: ([$lines[] | select(.event == "selected") | .queue_ms | number] | {p50: percentile(0.5), p95: percentile(0.95)}),
  ran_ms: ([$ofTasks[] | .duration_ms | number] | {p50: percentile(0.5), p95: percentile(0.95)}),
  now: {
    waiting: (($given.trays.inbox | map(select(test("^[A-Za-z0-9].*\\.(nd)?json$"))) | length)
      + ($given.trays.processing | map(select(test("~(ready|again)"))) | length)),
    running: ($given.trays.processing | map(select(test("~w-"))) | length),
    held: ($given.trays.processing | map(select(test("~hold-"))) | length)
  },
  questions: ([$questions[] | {id: (.name | rtrimstr(".md")), asked_at_ms: .asked}] + [$given.asking[] | {id: .id, asked_at_ms: null}] | sort_by(.id)),
  failures: ([$failed | group_by(.kind)[] | {kind: .[0].kind, tasks: (map(.task_id) | sort)} + spread(.t)]),
  refused: ([$lines[] | select(.event == "quarantined")] | if . == [] then [] else [{kind: "refused", tasks: (map(.task_id) | sort)} + spread(.t)] end),
  work: ([$work[] | select(.state != "landed" or (.landing as $id | any($closes[]; .task_id == $id and .status == "completed")))
    | {id, state, files, insertions, deletions}] | sort_by(.id)),
  completed: ([$named[] | {id: .task_id, at_ms: .t, attempts: (.attempt // 0)}] | .[-400:]),
  gates: ([$waits | group_by(.gate)[] | {
      gate: .[0].gate, waits: length, from_ms: .[0].from,
      to_ms: (if any(.[]; .to == null) then null else (map(.to) | max) end), total_ms: sum((.to // $to) - .from)
    }] | sort_by(.gate)),
  crashes: $crashes,
  costs: {rows: ([$costs | group_by(.agent)[] | {key: .[0].agent} + bill] | sort_by(.key)), total: ({key: "total"} + ($costs | bill))},
  slowest: ([$ofTasks[] | select(.duration_ms | type == "number")] | sort_by(-.duration_ms) | .[:5] | map(.duration_ms)),
  alerts: ([$good | objects_of("alerts") | map(select((.t | type) == "number" and .t >= $from and .t < $to
      and ([.alert] - ["task_failed", "needs_human", "question", "budget", "quota"] != [])))
    | group_by(.alert)[] | {kind: .[0].alert} + spread(.t)]),
  bad_lines: (($journals | length) - ($good | length))
}
