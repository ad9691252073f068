/** Without a cluster in the settings, next to nothing of this part is read: the bridge, and all that speaks to servers, come with the verb. */
import fs from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const SRC = fileURLToPath(new URL("../../../src", import.meta.url));

const PART = "parts/cluster/";

/** Files of src that come with a file: what it imports, and what that imports, but no types. */
function comesWith(file: string, known = new Set<string>()): Set<string> {
  if (known.has(file)) return known;
  known.add(file);
  const text = fs.readFileSync(join(SRC, file), "utf8");
  for (const [statement, target = ""] of text.matchAll(
    /^(?:import|export)\b[^;]*?from "(\.[^"]+)"/gms,
  ))
    if (!/^(?:import|export) type\b/.test(statement))
      comesWith(relative(SRC, resolve(dirname(join(SRC, file)), target)), known);
  return known;
}

const partOf = (files: Set<string>): string[] =>
  [...files]
    .filter((file) => file.startsWith(PART))
    .map((file) => file.slice(PART.length, -".ts".length))
    .sort();

test.each([
  ["cli/main.ts", []],
  ["cli/commands/status.ts", []],
  ["cli/commands/logs.ts", []],
  ["index.ts", []],
  ["worker/entry.ts", ["runner"]],
  [
    "supervisor.ts",
    ["gate-text", "part", "protocol/dispatch", "rest", "tree/bridge-document", "tree/cluster-dir"],
  ],
  ["cli/commands/run.ts", []],
])("with %s comes only %j", (file, expected) => {
  const files = comesWith(file);
  expect(files.size).toBeGreaterThan(10);
  expect(partOf(files)).toEqual(expected);
});

test("the packages for NATS are asked for by the verb alone, and nothing installs them", () => {
  const files = comesWith(`${PART}verbs/bridge.ts`);
  expect(partOf(files)).toContain("nats/packages");
  const root = JSON.parse(fs.readFileSync(join(SRC, "../package-lock.json"), "utf8")) as {
    packages: Record<string, unknown>;
  };
  expect(Object.keys(root.packages).filter((path) => path.includes("@nats-io"))).toEqual([]);
});
