/** What was measured, as lines with ratios and goals. Pure. */

export interface Goal {
  text: string;
  value: number;
  atLeast?: number;
  atMost?: number;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The smallest value that the share `q` of all values do not exceed. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN;
}

export function isMet({ value, atLeast, atMost }: Goal): boolean {
  if (Number.isNaN(value)) return false;
  return (
    value >= (atLeast ?? Number.NEGATIVE_INFINITY) && value <= (atMost ?? Number.POSITIVE_INFINITY)
  );
}

export function goalLine(goal: Goal): string {
  const wanted = goal.atLeast === undefined ? `≤ ${goal.atMost}` : `≥ ${goal.atLeast}`;
  return `${isMet(goal) ? "met   " : "MISSED"}  ${goal.text}: ${shown(goal.value)} (goal ${wanted})`;
}

export function row(...cells: (string | number)[]): string {
  const [name = "", ...rest] = cells;
  const texts = rest.map((cell) => (typeof cell === "number" ? shown(cell) : cell).padStart(12));
  return `  ${String(name).padEnd(34)}${texts.join("")}`;
}

function shown(value: number): string {
  if (Number.isNaN(value)) return "not measured";
  return value >= 100 ? String(Math.round(value)) : value.toPrecision(value < 1 ? 2 : 3);
}
