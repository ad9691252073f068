/** Without a cluster in the settings, next to nothing of this part is read: the bridge, and all that speaks to servers, come with the verb. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { comesWith, SRC } from "../../support/comes-with.ts";

const PART = "parts/cluster/";

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
