/** `status --all`: one line for each state tree that has a name. */
import { MailchuteError } from "../../core/errors.ts";
import { stateTree } from "../../core/state-tree.ts";
import { countText, safe, tableWithTexts } from "../../text/render.ts";
import type { Snapshot } from "../../view/snapshot.ts";
import { SnapshotReader } from "../../view/snapshot-reader.ts";
import { isTree } from "../shell/state-dir.ts";
import { listTreeNames, treeNamesDir } from "../shell/tree-names.ts";
import type { StatusContext, StatusView } from "./status-view.ts";

interface NamedTree {
  name: string;
  dir: string;
  /** Undefined when there is no state tree at this path, or it cannot be read. */
  snapshot?: Snapshot;
  fault?: string;
}

/** How many lines of a reason are shown. */
const REASON_LINES_MAX = 2;

/** Looks only at trees that have a name now. @throws an error with code ErrNoState when no tree has a name */
export function viewNamedTrees(env: NodeJS.ProcessEnv): StatusView {
  const named = listTreeNames(env);
  if (named.length === 0)
    throw new MailchuteError("ErrNoState", "no state tree has a name", {
      path: treeNamesDir(env),
      phase: "open",
      hint: "give one a name: `mailchute trees add NAME [DIR]`",
    });
  const readers = new Map(named.map(({ dir }) => [dir, new SnapshotReader(stateTree(dir))]));
  return {
    async look(nowMs) {
      const trees = named.map((one) => lookAt(one, readers.get(one.dir), nowMs));
      return {
        json: () => ({
          trees: trees.map(({ name, dir, snapshot, fault }) => ({
            name,
            dir,
            ...(fault === undefined ? {} : { fault }),
            snapshot: snapshot ?? null,
          })),
        }),
        lines: (ctx) => linesOf(trees, ctx),
      };
    },
    close() {
      for (const reader of readers.values()) reader.close();
    },
  };
}

function lookAt(
  { name, dir }: { name: string; dir: string },
  reader: SnapshotReader | undefined,
  nowMs: number,
): NamedTree {
  if (!isTree(dir)) return { name, dir, fault: `no state tree is at ${dir}` };
  try {
    return { name, dir, ...(reader === undefined ? {} : { snapshot: reader.next(nowMs) }) };
  } catch (error) {
    return { name, dir, fault: `${dir} cannot be read: ${(error as Error).message}` };
  }
}

function linesOf(trees: readonly NamedTree[], ctx: StatusContext): string[] {
  const columns = [
    { title: "NAME" },
    { title: "SUPERVISOR" },
    ...["WAITING", "READY", "RUNNING", "DONE", "FAILED"].map((title) => ({
      title,
      align: "right" as const,
    })),
  ];
  const rows = trees.map(({ name, snapshot }) => [name, ...cellsOf(snapshot)]);
  const texts = trees.map(({ snapshot, fault }) =>
    safe(fault ?? snapshot?.obstacles.map(({ what }) => what).join("; ") ?? ""),
  );
  return tableWithTexts(columns, rows, texts, ctx.columns, ctx.colour, REASON_LINES_MAX);
}

function cellsOf(snapshot: Snapshot | undefined): string[] {
  if (snapshot === undefined) return ["-", "-", "-", "-", "-", "-"];
  const { supervisor, control, counts } = snapshot;
  const state = supervisor.document === null ? "none" : supervisor.state;
  return [
    control.paused ? `${state}, paused` : state,
    countText(counts.waiting.count, counts.waiting.is_exact),
    countText(counts.ready),
    countText(counts.running),
    countText(counts.done.count, counts.done.is_exact),
    countText(counts.failed.count, counts.failed.is_exact),
  ];
}
