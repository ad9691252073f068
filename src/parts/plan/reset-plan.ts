/** Opens done and failed nodes of the plan again, all in one step: `roadmap reset`, and schedules that run the plan once more. */
import { join } from "node:path";
import {
  ErrInvalidRoadmap,
  ErrInvalidTransition,
  ErrTaskNotFound,
  MailchuteError,
} from "../../core/errors.ts";
import { foldId, type ProcessingName } from "../../core/names.ts";
import { type AttemptOutcome, failed } from "../../core/outcome.ts";
import { isTerminal, type RoadmapNode } from "../../core/roadmap.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { statOf } from "../../host/regular-file.ts";
import { randomToken } from "../../mailbox/files/random.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { findWaiting, liveIds } from "../../mailbox/find/locate.ts";
import { readUnlanded } from "../../view/landing.ts";
import type { AttemptTools } from "../../worker/runner.ts";
import { type ChangedPlan, changePlan } from "./change-plan.ts";
import { findNode, type RoadmapDocument } from "./read/document.ts";
import { noteReset, type ResetNote, readResets } from "./resets.ts";
import { chooseReset, type Reset, type ResetChoice } from "./rules/reset.ts";

/** How many nodes in flight a refusal names. */
const NAMED_MAX = 5;
/** The record of a schedule's reset names at most this many nodes. */
const TOLD_MAX = 100;

export type ResetDone = Pick<Reset, "open" | "left"> & Pick<ChangedPlan, "after" | "conflicts">;

/**
 * @param key names a run that may be repeated after a crash. The repetition leaves out nodes that have run since the first try
 * @param check refuses a plan that cannot be read
 * @throws ErrInvalidTransition one of the nodes is in flight · ErrTaskNotFound no such node · the errors of `changePlan`
 */
export async function resetPlan(
  { tree, trays }: { tree: StateTree; trays: Trays },
  choice: ResetChoice,
  { key, check }: { key?: string; check: (doc: RoadmapDocument) => void },
): Promise<ResetDone> {
  const isDurable = trays.durability === "power";
  const earlier = readResets(tree.dir).find((one) => one.key === key);
  const noteKey = key ?? `cli-${randomToken(8)}`;
  let reset: Pick<Reset, "open" | "left"> = { open: [], left: [] };
  const changed = await changePlan(tree.roadmap, trays.durability, (doc) => {
    check(doc);
    const find = (id: string): RoadmapNode | undefined => findNode(doc, id);
    for (const id of choice.ids ?? []) if (find(id) === undefined) throw notThere(id);
    if (earlier !== undefined) {
      const ids = stillClosed(tree, earlier, find);
      const { open, edits } = chooseReset(doc.nodes, find, { ids });
      reset = { open, left: [] };
      return edits;
    }
    const chosen = chooseReset(doc.nodes, find, choice);
    refuseInFlight(tree, trays, chosen);
    reset = chosen;
    // If a person saves the plan in between, this runs again for the new text and replaces the note.
    const ids = chosen.open.map(({ id }) => id);
    if (ids.length > 0) noteReset(tree.dir, { key: noteKey, at_ms: Date.now(), ids }, isDurable);
    return chosen.edits;
  });
  return { ...reset, after: changed.after, conflicts: changed.conflicts };
}

/** Runs a schedule's task that opens nodes of the plan again. A run that is repeated after a crash opens no node twice. */
export async function runReset(
  { tree, trays }: Pick<AttemptTools, "tree" | "trays">,
  choice: ResetChoice,
  { id, submission }: ProcessingName,
): Promise<AttemptOutcome> {
  try {
    const { open, left } = await resetPlan({ tree, trays }, choice, {
      // A retry by hand is a new submission, so it resets the plan again.
      key: `${id}@${submission}`,
      check({ problems: [first] }) {
        if (first !== undefined)
          throw new ErrInvalidRoadmap(`line ${first.line}: ${first.message}`, { phase: "reset" });
      },
    });
    const output = {
      opened: open.length,
      nodes: open.slice(0, TOLD_MAX).map((node) => node.id),
      left: left.slice(0, TOLD_MAX).map((node) => node.id),
    };
    return { kind: "completed", output, verdict: "pass", verdictReason: "", exitCode: null };
  } catch (error) {
    if (!(error instanceof MailchuteError)) throw error;
    return failed("reported", error.code, error.message);
  }
}

/** The nodes that an earlier try, cut off by a crash, still has to open. Nodes that have run since then are left out. */
function stillClosed(
  tree: StateTree,
  { ids, at_ms: atMs }: ResetNote,
  find: (id: string) => RoadmapNode | undefined,
): string[] {
  return ids.filter((id) => {
    if (!isTerminal(find(id)?.status ?? "open")) return false;
    const told = statOf(join(tree.evidence, id, "lifecycle.json"));
    return (told?.mtimeMs ?? 0) <= atMs;
  });
}

/** Throws if a chosen node is in flight. The plan may say that a node has ended while its task is retried or its work lands. */
function refuseInFlight(tree: StateTree, trays: Trays, { open, inFlight }: Reset): void {
  const live = liveIds(trays);
  const unlanded = readUnlanded(tree);
  const busy = [
    ...inFlight.map(({ id }) => id),
    ...open.flatMap(({ id }) => {
      if (live.has(foldId(id)) || findWaiting(trays, id) !== undefined) return [id];
      return unlanded.get(foldId(id))?.is === "moving" ? [`${id} (its work lands)`] : [];
    }),
  ];
  if (busy.length === 0) return;
  const more = busy.length > NAMED_MAX ? ` and ${busy.length - NAMED_MAX} more` : "";
  const names = `${busy.slice(0, NAMED_MAX).join(", ")}${more}`;
  throw new ErrInvalidTransition(
    `nothing was reset, because ${names} ${busy.length === 1 ? "is" : "are"} in flight`,
    {
      id: busy[0]?.split(" ")[0] ?? "",
      phase: "reset",
      hint: "wait for the end (mailchute wait ID), or take it back first: mailchute cancel --requeue ID",
    },
  );
}

function notThere(id: string): ErrTaskNotFound {
  return new ErrTaskNotFound(`the roadmap has no node ${JSON.stringify(id)}`, {
    id,
    phase: "reset",
    hint: "see `mailchute roadmap show`",
  });
}
