/** The page of work on branches: what has and has not landed. */
import type { StateTree } from "../../../core/state-tree.ts";
import { changeText, readWork, type Work } from "../../../view/landing.ts";
import {
  type Block,
  type Cell,
  linkToTask,
  type Page,
  type Pill,
  shown,
  workPath,
} from "../page.ts";

const ROWS_MAX = 300;

export const STATES: Readonly<Record<Work["state"], Pill>> = {
  branch: { look: "warn", word: "waits for you" },
  failed: { look: "bad", word: "could not land" },
  open: { look: "run", word: "on its way" },
  landed: { look: "good", word: "landed" },
};
const ORDER: Work["state"][] = ["branch", "failed", "open", "landed"];

export async function reviewPage(tree: StateTree): Promise<Page> {
  const all = await readWork(tree);
  const work = all.toSorted((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
  const waits = work.filter(({ state }) => state !== "landed");
  const landed = work.filter(({ state }) => state === "landed");
  const table = (title: string, list: readonly Work[], none: string): Block => ({
    kind: "table",
    title,
    columns: ["work", "state", "changed", "for", "why"],
    rows: list
      .slice(0, ROWS_MAX)
      .map((one): Cell[] => [
        { ...linkToTask(one.task_id, one.title), to: workPath(one.task_id) },
        STATES[one.state],
        changeText(one),
        shown(one.target),
        shown(one.why),
      ]),
    none,
  });
  return {
    title: "Review",
    command: "mailchute report",
    blocks: [
      table("Not landed yet", waits, "nothing waits to be landed"),
      table("Landed", landed, "nothing has landed"),
    ],
  };
}
