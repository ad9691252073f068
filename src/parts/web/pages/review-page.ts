/** The page of work on branches: what has and has not landed. */
import type { StateTree } from "../../../core/state-tree.ts";
import { changeText, readWork, type Work } from "../../../view/landing.ts";
import { type Block, type Cell, linkToWork, type Page, type Pill, shown, table } from "../page.ts";

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
  const cellsOf = (one: Work): Cell[] => [
    linkToWork(one),
    STATES[one.state],
    changeText(one),
    shown(one.target),
    shown(one.why),
  ];
  const tableOf = (title: string, list: readonly Work[], none: string): Block => {
    const rows = list.slice(0, ROWS_MAX).map(cellsOf);
    return table(title, ["work", "state", "changed", "for", "why"], rows, none);
  };
  return {
    title: "Review",
    command: "mailchute report",
    blocks: [
      tableOf("Not landed yet", waits, "nothing waits to be landed"),
      tableOf("Landed", landed, "nothing has landed"),
    ],
  };
}
