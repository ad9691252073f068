/**
 * The one table of fields: where each field may stand, which option of `enqueue` sets it, and which other words people write for it.
 * It judges names that mean nothing where they stand: a task with such a field would run otherwise than meant, without a word. Pure.
 */
import { CALLBACK_EVENTS } from "./callback.ts";
import { isObject, parseObject } from "./json-object.ts";
import { isOneEdit } from "./suggest.ts";

/** `metadata` and `retry_policy` are members of a task or node. Authors may add any names of their own to them. */
export type FieldPlace = "task" | "line" | "node" | "schedule" | "metadata" | "retry_policy";

export interface FieldRow {
  /** The places where it means something. */
  in: readonly FieldPlace[];
  /** The option of `enqueue` that sets it. */
  flag?: string;
  /** Words that people write for it. They are not accepted: they may mean other units or another form of value. */
  notCalled: readonly string[];
  /** The field that means the same where this one means nothing. */
  elsewhere?: string;
}
export type FieldTable = ReadonlyMap<string, FieldRow>;

/** Each line: the field, where it may stand, its option, after `not` the words that are not accepted, after `or` what to write elsewhere. */
const TABLE = `
id                  task line node           --id
title               task line node           --title
description         task line node           not desc
type                task line node           --type
priority            task node                --priority      not prio
dependencies        task node metadata       --after         not dependency dependencys deps depends after needs requires wait_for waits_for blocked_by required_tasks
depends_on          task node                --after
max_attempts        task line node retry_policy --max-attempts not retries retry tries max_retries max_tries max_runs retry_count retry_limit
retry_policy        task line node           --max-attempts
maxAttempts         retry_policy
exec                task line node           not cmd command argv args program script shell
agent               task line node           --agent
agents              task                     --fallback      not fallback fallbacks fallback_agents
model               task line                --model
effort              task line
permissions         task line                not permission permission_mode
capabilities        task line node           --cap           not caps required_capabilities
prompt              task line node           --prompt        not instruction instructions
payload             task line node           --payload
cwd                 task line node           --cwd           not dir directory workdir work_dir working_dir working_directory
env                 task line node           --env           not environ environment
env_from            task line                --env-from
timeout_ms          task line node           --timeout       not timeout timeout_s timeout_sec timeout_seconds timeout_secs time_limit max_time max_duration
keep_background     task line node           --keep-background
run_limits          task line                --max-memory    not memory max_memory memory_limit resources resource_limits
verify              task line node           --verify        not check checks verification
expect_files        task line node           not expected_files expects
budget              task line node           not max_cost max_budget max_budget_usd budget_usd cost_limit
not_before          task                     --delay         not delay delay_ms run_at start_at start_after scheduled_at earliest_start
group               task                     --group         not queue concurrency_group
weight              task                     --weight
limits              task                     --limit
owns                task
worktree            task metadata            --worktree
worktree_of         metadata
setup               task
cache               task
land                task                     --land
target              task                     --target        not target_branch
land_command        task
land_into_checkout  task
base                task
review_by           task                     not reviewer
protect             task                     not protected
verify_from         task
prove               task
dedup_key           task                     --dedup         not unique unique_key idempotency_key dedupe_key
dedup_window_ms     task                     --dedup-window
on_success          task                     --on-success    not on_complete on_completed on_done
on_failure          task                     --on-failure    not on_error on_fail
on_settled          task                     --on-settled    not on_end on_exit on_finish
metadata            task line
traceparent         task line
sequence_number     task
created_at          task line
epic_id             task line
parent_id           task line
status              task line node           not state
attempts            task line
last_error          task line
claimed_by          task line
claimed_at          task line
operator            task line
verdict             task line
verdict_reason      task line
test_mode           task line
test_scope          task line
test_command        task line
updated_at          task line
callback_of         task
parent              node                     or parent_id
epic                node                     or epic_id
milestone           node
domain              node
inputs              node
goal                node                     or description
acceptance          node                     not acceptance_criteria
role                node                     or type
reopened            node
milestones          node
tasks               node
cron                schedule
every               schedule                 not interval
at                  schedule                 or not_before
timezone            schedule                 not tz zone time_zone
start               schedule
end                 schedule
missed              schedule
missed_max          schedule
missed_within       schedule
grace               schedule
overlap             schedule
paused              schedule
jitter              schedule
task                schedule
roadmap             schedule
`;

let fields: FieldTable | undefined;

/** The table, read when it is first needed: every command loads this file, and few need it. */
export function taskFields(): FieldTable {
  fields ??= readTable(TABLE);
  return fields;
}

function readTable(text: string): FieldTable {
  return new Map(text.trim().split("\n").map(readRow));
}

function readRow(line: string): [name: string, row: FieldRow] {
  const [, head = "", notCalled = "", elsewhere] =
    /^(.*?)(?: not (.*?))?(?: or (\w+))?$/.exec(line) ?? [];
  const [name = "", ...words] = head.trim().split(/\s+/);
  const flag = words.find((word) => word.startsWith("--"))?.slice(2);
  const row: FieldRow = {
    in: words.filter((word) => !word.startsWith("--")) as FieldPlace[],
    notCalled: notCalled.split(" ").filter((word) => word !== ""),
  };
  if (flag !== undefined) row.flag = flag;
  if (elsewhere !== undefined) row.elsewhere = elsewhere;
  return [name, row];
}

/** The names that mean something in a place. */
export function fieldsIn(place: FieldPlace, table = taskFields()): string[] {
  return [...table].flatMap(([name, row]) => (row.in.includes(place) ? [name] : []));
}

/** A name that has no effect where it stands. */
export interface FieldNotice {
  /** The name with its place in the task: `metadata.depends_on`. */
  field: string;
  /** A sentence about it, which begins with the name in quotes. */
  why: string;
  /** `misspelt`: `meant` is its name. `misplaced`: it means something elsewhere. */
  kind: "misspelt" | "misplaced";
  meant?: string;
}

const PLACES: Readonly<Record<FieldPlace, string>> = {
  task: "a task",
  line: "a line of a batch",
  node: "a node of the plan",
  schedule: "a schedule",
  metadata: "metadata",
  retry_policy: "a retry_policy",
};
/** In these places all other names belong to the author. */
const OF_AUTHORS: ReadonlySet<FieldPlace> = new Set(["metadata", "retry_policy"]);
/** How many names of each place are remembered. */
const KNOWN_MAX = 1000;
/** A longer name is like no field. */
const NAME_CHARS_MAX = 64;

/** Judges names. Keep it: it remembers its answers, because thousands of tasks have the same names. */
export class FieldJudge {
  private readonly known = new Map<FieldPlace, Map<string, FieldNotice | undefined>>();
  /** The field for each word of `notCalled`, by its bare form. */
  private readonly meant = new Map<string, string>();
  /** The bare form of each field. */
  private readonly bare = new Map<string, string>();

  constructor(private readonly table: FieldTable = taskFields()) {
    for (const [name, { notCalled }] of table) {
      this.bare.set(name, bare(name));
      for (const word of notCalled) this.meant.set(bare(word), name);
    }
  }

  /** The fields of a task, a line, a node or a schedule that have no effect. */
  judge(value: Readonly<Record<string, unknown>>, place: FieldPlace): FieldNotice[] {
    const found: FieldNotice[] = [];
    for (const name in value) {
      const notice = this.judgeName(name, place);
      if (notice !== undefined) found.push(notice);
      else if (name === "metadata" || name === "retry_policy")
        found.push(...this.inside(name, value[name], name));
      else if (place === "task" && (CALLBACK_EVENTS as readonly string[]).includes(name))
        found.push(...this.inside(name, value[name], "task"));
      else if (place === "schedule" && name === "task")
        found.push(...this.inside(name, value[name], "task"));
    }
    return found;
  }

  private inside(name: string, value: unknown, place: FieldPlace): FieldNotice[] {
    if (!isObject(value)) return [];
    return this.judge(value, place).map((one) => ({
      ...one,
      field: `${name}.${one.field}`,
      why: `${name}: ${one.why}`,
    }));
  }

  /** Undefined when the name means something there, or is one of the author. */
  judgeName(name: string, place: FieldPlace): FieldNotice | undefined {
    let known = this.known.get(place);
    if (known === undefined) {
      known = new Map();
      this.known.set(place, known);
    }
    if (known.has(name)) return known.get(name);
    if (known.size >= KNOWN_MAX) known.clear();
    const notice = this.look(name, place);
    if (name.length <= NAME_CHARS_MAX) known.set(name, notice);
    return notice;
  }

  private look(name: string, place: FieldPlace): FieldNotice | undefined {
    if (name.length > NAME_CHARS_MAX) return undefined;
    const row = this.table.get(name);
    // `$schema` is for editors.
    if (row?.in.includes(place) === true || name === "$schema") return undefined;
    const quoted = JSON.stringify(name);
    const isOfAuthors = OF_AUTHORS.has(place);
    if (!isOfAuthors && row !== undefined)
      return { field: name, why: `${quoted} ${this.whereElse(row, place)}`, kind: "misplaced" };
    const meant = this.nearest(name, place);
    if (meant === undefined) return undefined;
    const why = `${quoted} is no field of ${PLACES[place]}; did you mean ${JSON.stringify(meant)}?`;
    return { field: name, why, kind: "misspelt", meant };
  }

  /** Says where a field may stand that has no effect in `place`. */
  private whereElse({ in: places, elsewhere }: FieldRow, place: FieldPlace): string {
    const where = places
      .filter((one) => !OF_AUTHORS.has(one))
      .map((one) => PLACES[one])
      .join(" or ");
    const inside = places.find((one) => OF_AUTHORS.has(one));
    const hint =
      elsewhere !== undefined && this.table.get(elsewhere)?.in.includes(place) === true
        ? `; write ${JSON.stringify(elsewhere)}`
        : "";
    const of = where === "" ? `in ${inside}` : `in ${where}`;
    return `has no effect in ${PLACES[place]}, only ${of}${hint}`;
  }

  private nearest(name: string, place: FieldPlace): string | undefined {
    const wanted = bare(name);
    const meant = this.meant.get(wanted);
    if (meant !== undefined && this.table.get(meant)?.in.includes(place) === true) return meant;
    // Authors may have thousands of names of their own.
    for (const [field, its] of this.bare)
      if (isOneEdit(wanted, its) && this.table.get(field)?.in.includes(place) === true)
        return field;
    // In metadata, the second spelling of a field there is a mistake, too.
    return place === "metadata" && wanted === bare("depends_on") ? "dependencies" : undefined;
  }
}

let judge: FieldJudge | undefined;

/** The one judge of this process: it remembers the names. */
export function fieldJudge(): FieldJudge {
  judge ??= new FieldJudge();
  return judge;
}

/** The fields of lines that have no effect, each once. @param text whole lines; those that hold no object are skipped */
export function fieldsOfBatch(text: string): FieldNotice[] {
  const found = new Map<string, FieldNotice>();
  for (const line of text.split("\n")) {
    const fields = line.trim() === "" ? undefined : parseObject(line);
    for (const one of fields === undefined ? [] : fieldJudge().judge(fields, "line"))
      found.set(one.why, one);
  }
  return [...found.values()];
}

/** Without what differs between ways to write a name: `maxAttempts`, `max-attempts`, `max_attempts`. */
function bare(name: string): string {
  return name.toLowerCase().replaceAll(/[-_ ]/g, "");
}
