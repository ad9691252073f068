/**
 * Reads from the journal of a tree, and from nothing of mailchute's, whether a limit was passed at any instant. It knows the tasks and
 * the limits by itself.
 */

/** A line of the lifecycle journal. */
type Line = Readonly<Record<string, unknown>>;

export interface Rules {
  /** What a task takes of each slot limit: its group, and the limits that it shares. */
  takes(taskId: string): Readonly<Record<string, number>>;
  slots: Readonly<Record<string, number>>;
  rates: Readonly<Record<string, { perS: number; burst: number }>>;
}

const ENDS: ReadonlySet<unknown> = new Set([
  "completed",
  "failed",
  "retry_scheduled",
  "released",
  "held",
  "reclaimed",
  "cancelled",
]);

interface Change {
  t: number;
  more: 1 | -1;
  id: string;
}

/** Faults in words; none when all limits held. */
export function findPassed(lines: readonly Line[], rules: Rules): string[] {
  return [...passedSlots(lines, rules), ...passedRates(lines, rules)];
}

/** The most that was ever taken of each slot limit. */
export function mostTaken(lines: readonly Line[], rules: Rules): Record<string, number> {
  const most: Record<string, number> = {};
  walk(lines, rules, (name, taken) => {
    most[name] = Math.max(most[name] ?? 0, taken);
  });
  return most;
}

function passedSlots(lines: readonly Line[], rules: Rules): string[] {
  const faults: string[] = [];
  walk(lines, rules, (name, taken, { id, t }) => {
    const slots = rules.slots[name];
    if (slots !== undefined && taken > slots)
      faults.push(`${name}: ${taken} of ${slots} when ${id} started at ${t}`);
  });
  return faults;
}

function walk(
  lines: readonly Line[],
  rules: Rules,
  onStart: (name: string, taken: number, change: Change) => void,
): void {
  const ends = new Map<string, number>();
  for (const line of lines)
    if (ENDS.has(line["event"])) {
      const lease = leaseOf(line);
      ends.set(lease, Math.min(ends.get(lease) ?? Number.POSITIVE_INFINITY, Number(line["t"])));
    }
  const starts = lines.filter((line) => line["event"] === "started");
  // A process that died took its last lines with it: at the latest, a run ends when the task starts anew.
  const next = new Map<string, number>();
  for (const line of starts.toSorted((a, b) => Number(b["t"]) - Number(a["t"]))) {
    const again = next.get(String(line["task_id"]));
    const lease = leaseOf(line);
    if (again !== undefined) ends.set(lease, Math.min(ends.get(lease) ?? again, again));
    next.set(String(line["task_id"]), Number(line["t"]));
  }
  const changes = starts
    .flatMap((line): Change[] => {
      const id = String(line["task_id"]);
      const end = ends.get(leaseOf(line));
      return [
        { t: Number(line["t"]), more: 1, id },
        ...(end === undefined ? [] : [{ t: end, more: -1 as const, id }]),
      ];
    })
    // Of one millisecond, ends come first.
    .sort((a, b) => a.t - b.t || a.more - b.more);
  const taken: Record<string, number> = {};
  for (const change of changes)
    for (const [name, count] of Object.entries(rules.takes(change.id))) {
      taken[name] = (taken[name] ?? 0) + change.more * count;
      if (change.more === 1) onStart(name, taken[name], change);
    }
}

/** In no span of time are there more starts than the burst, and what the rate gives in that span. */
function passedRates(lines: readonly Line[], rules: Rules): string[] {
  return Object.entries(rules.rates).flatMap(([name, { perS, burst }]) => {
    const starts = startsOf(lines, name);
    for (let first = 0; first < starts.length; first++)
      for (let last = first + burst; last < starts.length; last++) {
        const spanS = ((starts[last] ?? 0) - (starts[first] ?? 0)) / 1e6;
        const count = last - first + 1;
        if (count > burst + perS * spanS + 1e-6)
          return [`${name}: ${count} starts in ${spanS} s, of ${perS}/s with burst ${burst}`];
      }
    return [];
  });
}

/** Times of the starts under this rate (µs), each once, the earliest first. */
export function startsOf(lines: readonly Line[], rate: string): number[] {
  return lines
    .filter((line) => line["event"] === "started")
    .flatMap((line) => (line["rates"] as Record<string, number> | undefined)?.[rate] ?? [])
    .sort((a, b) => a - b);
}

function leaseOf(line: Line): string {
  return [line["task_id"], line["lease"], line["owner"]].map(String).join(" ");
}
