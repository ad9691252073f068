/** The page of work on branches: what has and has not landed. */
import type { StateTree } from "../../../core/state-tree.ts";
import { changeText, readWork, type Work } from "../../../view/landing.ts";
import { type Block, type Cell, type Page, shown } from "../page.ts";

const ROWS_MAX = 300;

const STATES: Readonly<Record<Work["state"], string>> = {
  branch: "waits for you",
  failed: "could not land",
  open: "is on its way",
  landed: "landed",
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
    columns: ["task", "state", "changed", "for", "title", "why"],
    rows: list
      .slice(0, ROWS_MAX)
      .map((one): Cell[] => [
        { text: shown(one.task_id), to: `/review/${encodeURIComponent(one.task_id)}` },
        STATES[one.state],
        changeText(one),
        shown(one.target),
        one.title === one.task_id ? "" : shown(one.title),
        shown(one.why),
      ]),
    none,
  });
  return {
    title: "Review",
    command: "mailchute report",
    at_ms: Date.now(),
    health: null,
    blocks: [
      table("Not landed yet", waits, "nothing waits to be landed"),
      table("Landed", landed, "nothing has landed"),
    ],
  };
}
