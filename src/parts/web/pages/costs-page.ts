/** The page of what coding agents have cost: the rows of `cost`, by day, agent, account, task, model or plan. */
import { COST_KEYS, type CostKey, type CostSum, usdText } from "../../../agents/cost-sums.ts";
import type { DayBudget } from "../../../core/budget.ts";
import { countText } from "../../../text/render.ts";
import {
  type Block,
  type Cell,
  factsOf,
  linksOf,
  linkToTask,
  type Page,
  pathWith,
  say,
  shown,
  table,
} from "../page.ts";
import type { VerbReader } from "../verb-reader.ts";

const AGAIN_MS = 2000;
const ROWS_MAX = 200;
const HOUR_MS = 60 * 60 * 1000;
/** Texts of links to spans, their names in the address, and how long they are. */
const SPANS: readonly [text: string, since: string | undefined, ms: number | undefined][] = [
  ["last 12 h", "12h", 12 * HOUR_MS],
  ["last 24 h", "24h", 24 * HOUR_MS],
  ["last 7 d", "168h", 168 * HOUR_MS],
  ["all that is kept", undefined, undefined],
];
const LINKS_OF: Partial<Record<CostKey, (key: string) => Cell>> = {
  task: linkToTask,
  agent: (key) => ({ text: shown(key), to: "/agents" }),
};

/** @param query `by` and `since`, as `mailchute cost` has them */
export async function costsPage(
  verbs: VerbReader,
  query: URLSearchParams,
  budgets: DayBudget,
): Promise<Page> {
  const by = COST_KEYS.find((one) => one === query.get("by")) ?? "day";
  const [, since, ms] = SPANS.find(([, one]) => one === query.get("since")) ?? [];
  const { rows: all, total } = await readCosts(verbs, by, ms);
  const rows = by === "day" ? all.toReversed() : all;
  const to = (values: object): string => pathWith("/costs", { by, since, ...values });
  return {
    title: "Costs",
    command: `mailchute cost --by ${by}${since === undefined ? "" : ` --since ${since}`}`,
    blocks: [
      linksOf(
        "one row for each",
        COST_KEYS.map((one) => [one, to({ by: one }), one === by]),
      ),
      linksOf(
        "time",
        SPANS.map(([text, one]) => [text, to({ since: one }), one === since]),
      ),
      ...limitsOf(budgets),
      costTable(`By ${by}`, by, [
        ...(total === undefined || total.runs === 0 ? [] : [[total, "all"] as const]),
        ...rows.slice(0, ROWS_MAX).map((one) => [one, (LINKS_OF[by] ?? shown)(one.key)] as const),
      ]),
      ...(rows.length > ROWS_MAX ? [say(`the first ${ROWS_MAX} of ${rows.length} are shown`)] : []),
    ],
  };
}

/** What `cost` prints. @param since ms: only the runs of so long a time */
export async function readCosts(
  verbs: VerbReader,
  by: CostKey,
  since?: number,
): Promise<{ rows: readonly CostSum[]; total: CostSum | undefined }> {
  const options = { by, ...(since !== undefined && { since }) };
  const found = await verbs.read({ verb: "cost", options, againMs: AGAIN_MS });
  const { rows = [], total } = (found ?? {}) as { rows?: CostSum[]; total?: CostSum };
  return { rows, total };
}

export function costTable(
  title: string,
  by: CostKey,
  sums: readonly (readonly [sum: CostSum, name: Cell])[],
): Block {
  const counts = ["runs", "not done", "input tokens", "of these cached", "output tokens"];
  const rows = sums.map(([sum, name]) => cellsOf(sum, name));
  return table(title, [by, "USD", ...counts], rows, "no run of a coding agent is booked");
}

function cellsOf(sum: CostSum, name: Cell): Cell[] {
  const { runs, runs_not_completed: notDone, runs_without_price: unpriced } = sum;
  return [
    name,
    `${usdText(sum)}${unpriced === 0 ? "" : `; ${countText(unpriced)} without a price`}`,
    countText(runs),
    countText(notDone),
    countText(sum.input_tokens),
    countText(sum.cached_input_tokens),
    countText(sum.output_tokens),
  ];
}

function limitsOf({ day_usd: soft = 0, day_hard_usd: hard = 0 }: DayBudget): Block[] {
  const text = (usd: number): Cell | null => (usd > 0 ? `$${usd} a day (UTC)` : null);
  if (soft <= 0 && hard <= 0) return [];
  return [
    factsOf([
      ["asks a person at", text(soft)],
      ["stops at", text(hard)],
    ]),
  ];
}
