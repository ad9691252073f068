/** Writes numbers in the text format of Prometheus, version 0.0.4. Pure. */
import type { Histogram } from "./histogram.ts";

export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  labels?: Labels;
  value: number;
}

export type Family =
  | { name: string; help: string; type: "counter" | "gauge"; samples: readonly Sample[] }
  /** Written in seconds. */
  | { name: string; help: string; type: "histogram"; of: Histogram };

/** The longest text of a label (characters). */
const LABEL_CHARS_MAX = 100;

/** @param shared labels that all samples get. A family without samples is left out */
export function exposition(families: readonly Family[], shared: Labels = {}): string {
  let text = "";
  for (const family of families) {
    const { name, help, type } = family;
    const lines = type === "histogram" ? bucketLines(family, shared) : sampleLines(family, shared);
    if (lines.length === 0) continue;
    text += `# HELP ${name} ${escaped(help)}\n# TYPE ${name} ${type}\n${lines.join("\n")}\n`;
  }
  return text;
}

function sampleLines(
  { name, samples }: { name: string; samples: readonly Sample[] },
  shared: Labels,
): string[] {
  return samples.map(({ labels = {}, value }) => `${name}${labelText(labels, shared)} ${value}`);
}

function bucketLines({ name, of }: { name: string; of: Histogram }, shared: Labels): string[] {
  const buckets = of.cumulative();
  const all = labelText({}, shared);
  return [
    ...buckets.map(({ upToMs, count }) => {
      const le = upToMs === Number.POSITIVE_INFINITY ? "+Inf" : String(upToMs / 1000);
      return `${name}_bucket${labelText({ le }, shared)} ${count}`;
    }),
    `${name}_sum${all} ${of.sumMs / 1000}`,
    `${name}_count${all} ${buckets.at(-1)?.count ?? 0}`,
  ];
}

/** A label of the sample itself wins over a shared one. */
function labelText(own: Labels, shared: Labels): string {
  const all = Object.entries({ ...shared, ...own });
  if (all.length === 0) return "";
  return `{${all.map(([name, value]) => `${name}="${labelValue(value)}"`).join(",")}}`;
}

/** Cuts a long text between characters, so that no half of one is left. */
function labelValue(value: string): string {
  const cut = value.slice(0, LABEL_CHARS_MAX).replace(/[\uD800-\uDBFF]$/, "");
  return escaped(cut).replaceAll('"', '\\"');
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
