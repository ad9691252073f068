/** What `status` says about the work that tasks have left on their branches. Pure. */
import { counted, describeCounts, paint, safe, table } from "../../text/render.ts";
import { changeText, type Work } from "../../view/landing.ts";

/** It lists at most this many, and counts the rest. */
const SHOWN_MAX = 10;

const WORDS: Readonly<Record<Work["state"], string>> = {
  failed: "could not land",
  branch: "on its branch",
  open: "on its way",
  landed: "landed",
};
const STATES = Object.keys(WORDS) as Work["state"][];

/** `1 could not land, 2 landed`; undefined when there is no work. */
export function workCounts(work: readonly Work[]): string | undefined {
  const counts = STATES.map((state) => [
    WORDS[state],
    work.filter((one) => one.state === state).length,
  ]);
  return work.length === 0 ? undefined : describeCounts(Object.fromEntries(counts));
}

/** The work that has not landed. Work that needs a person comes first. */
export function workLines(
  work: readonly Work[],
  { colour, columns }: { colour: boolean; columns: number },
): string[] {
  const open = STATES.filter((state) => state !== "landed").flatMap((state) =>
    work.filter((one) => one.state === state),
  );
  if (open.length === 0) return [];
  const titles = [{ title: "TASK" }, { title: "STATE" }, { title: "CHANGED" }, { title: "TARGET" }];
  const rows = open
    .slice(0, SHOWN_MAX)
    .map((one) => [safe(one.task_id), WORDS[one.state], changeText(one), safe(one.target)]);
  const more = open.length - rows.length;
  return [
    "",
    paint(colour, "bold", "Work that has not landed (mailchute review ID)"),
    ...table(titles, rows, columns, colour),
    ...(more > 0 ? [`and ${counted(more, "more task")}`] : []),
  ];
}
