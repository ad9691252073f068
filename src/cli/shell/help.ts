/** `--help`, made from the option tables. */

import { wrap } from "../../text/render.ts";
import type { CommandSpec, OptionSpec, OptionTable } from "./command-spec.ts";
import { SHARED_OPTIONS } from "./options.ts";
import { REGISTRY } from "./registry.ts";

const WIDTH = 80;
const MARGIN = 2;

/** The overview of all verbs. @param onPath verbs that are programs on PATH */
export function overview(version: string, onPath: ReadonlyMap<string, string>): string {
  const lines = [
    `mailchute ${version}: a worker pool that is just folders`,
    "",
    "Usage: mailchute <command> [options]",
  ];
  const names = Object.keys(REGISTRY);
  const column = Math.max(...names.map((name) => name.length)) + 2 * MARGIN;
  let group = "";
  for (const [name, entry] of Object.entries(REGISTRY)) {
    if (entry.hidden === true) continue;
    if (entry.group !== group) {
      group = entry.group;
      lines.push("", `${group}:`);
    }
    lines.push(...listed(name, entry.summary, column));
  }
  if (onPath.size > 0) lines.push("", "On PATH:", `  ${[...onPath.keys()].join(", ")}`);
  lines.push("", "Every command takes:", ...optionLines(SHARED_OPTIONS));
  lines.push(
    "",
    "`mailchute help <command>` tells more. `mailchute --version` prints the version.",
  );
  lines.push("Tasks may also be dropped as JSON files into state/mailbox/inbox by any program.");
  return lines.join("\n");
}

/** The help of one verb. */
export function commandHelp(name: string, spec: CommandSpec): string {
  const summary = REGISTRY[name]?.summary ?? "";
  const words = [
    name,
    ...(spec.takesRest === true ? ["[options]", spec.usage] : [spec.usage, "[options]"]),
  ];
  const usage = `Usage: mailchute ${words.filter((word) => word !== "").join(" ")}`;
  const lines = [...wrap(`mailchute ${name}: ${summary}`, WIDTH), "", ...wrap(usage, WIDTH, 9)];
  for (const paragraph of spec.details ?? []) lines.push("", ...wrap(paragraph, WIDTH));
  if (spec.subcommands !== undefined) {
    const column = Math.max(...Object.keys(spec.subcommands).map((sub) => sub.length)) + 2 * MARGIN;
    lines.push("", "Commands:");
    for (const [sub, text] of Object.entries(spec.subcommands))
      lines.push(...listed(sub, text, column));
  }
  if (Object.values(spec.options).some((option) => option.hidden !== true))
    lines.push("", "Options:", ...optionLines(spec.options));
  lines.push("", "Shared options:", ...optionLines(SHARED_OPTIONS));
  if (spec.examples !== undefined)
    lines.push("", "Examples:", ...spec.examples.map((example) => `  mailchute ${example}`));
  return lines.join("\n");
}

function optionLines(table: OptionTable): string[] {
  const rows = Object.entries(table)
    .filter(([, spec]) => spec.hidden !== true)
    .map(([name, spec]): [string, string] => [optionLabel(name, spec), helpText(spec)]);
  const column = Math.min(28, Math.max(...rows.map(([label]) => label.length)) + 2 * MARGIN);
  return rows.flatMap(([label, help]) => listed(label, help, column));
}

function optionLabel(name: string, spec: OptionSpec): string {
  const long = spec.type === "toggle" ? `--[no-]${name}` : `--${name}`;
  const head = spec.short === undefined ? long : `-${spec.short}, ${long}`;
  return "value" in spec ? `${head} ${spec.value}` : head;
}

function helpText(spec: OptionSpec): string {
  if (spec.type === "text" && spec.choices !== undefined)
    return `${spec.help}; one of: ${spec.choices.join(", ")}${spec.orNumber === undefined ? "" : ", or a number"}`;
  if (spec.type === "text" && spec.many === true) return `${spec.help} (may be repeated)`;
  return spec.help;
}

/** A label and its text in two columns; the text goes below when the label is too long. */
function listed(label: string, text: string, column: number): string[] {
  const body = wrap(text, WIDTH - column).map((line) => " ".repeat(column) + line);
  const head = " ".repeat(MARGIN) + label;
  if (head.length + 2 > column) return [head, ...body];
  return [head.padEnd(column) + (body[0] ?? "").slice(column), ...body.slice(1)];
}
