/** Finds the rollout file of a thread: `sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`, on the day when the thread began. */
import fs from "node:fs";
import { join } from "node:path";

/** How many days are searched, the newest first. */
const DAYS_MAX = 400;

/** @param codexHome `$CODEX_HOME`, else `~/.codex` */
export function findRollout(
  codexHome: string,
  threadId: string,
  daysMax = DAYS_MAX,
): string | undefined {
  if (threadId === "") return undefined;
  const end = `-${threadId}.jsonl`;
  let days = 0;
  for (const day of daysOf(join(codexHome, "sessions"))) {
    if (++days > daysMax) return undefined;
    const name = namesIn(day).find((each) => each.startsWith("rollout-") && each.endsWith(end));
    if (name !== undefined) return join(day, name);
  }
  return undefined;
}

function* daysOf(sessions: string): Generator<string> {
  for (const year of newestFirst(sessions))
    for (const month of newestFirst(year)) yield* newestFirst(month);
}

function newestFirst(folder: string): string[] {
  return namesIn(folder)
    .filter((name) => /^\d{2,4}$/.test(name))
    .sort()
    .reverse()
    .map((name) => join(folder, name));
}

/** Empty when it is no folder, or does not exist. */
function namesIn(folder: string): string[] {
  try {
    return fs.readdirSync(folder);
  } catch {
    return [];
  }
}
