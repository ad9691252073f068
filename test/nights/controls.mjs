#!/usr/bin/env node
/**
 * `node test/nights/controls.mjs`: plays a night with each of some builds that are broken on purpose. The oracle must find out each of
 * them, by the sentence that stands beside it.
 */
import { spawnSync } from "node:child_process";
import { createJiti } from "jiti";
import { here } from "../../scripts/demo-stage.mjs";

const jiti = createJiti(import.meta.url, { fsCache: false });
const { breakBuild, UNCHECKED } = await jiti.import("../support/broken.ts");

/** Twelve items, among them one that cannot land and one that meets a used-up account. */
const NIGHT = ["--seed", "64", "--items", "12", "--kills", "4", "--limit", "120", "--json"];
const VARIANTS = [
  {
    name: "work lands although its check is red",
    changes: [
      UNCHECKED,
      {
        file: "dist/worker/entry.cjs",
        from: "const programs = assignment.task.verify ?? [];",
        to: "const programs = [];",
      },
    ],
    says: /landed, and cannot be done/,
  },
  {
    name: "a landing that moved nothing says that it landed",
    changes: [
      {
        file: "dist/worker/land.cjs",
        from: '"update-ref", "-m", message, ref, to, from)',
        to: '"rev-parse", to)',
      },
      {
        file: "dist/worker/land.cjs",
        from: 'ref) === to ? "moved" : "elsewhere" };',
        to: 'ref) === "" ? "elsewhere" : "moved" };',
      },
    ],
    says: /its record says landed, and git says 0/,
  },
  {
    name: "an account at its limit uses up an attempt",
    changes: [
      {
        file: "dist/worker/entry.cjs",
        from: 'case "deferred": {',
        to: 'case "deferred": if (/^quota-/.test(outcome.hold)) return { action: "retry", delayMs: 300 }; {',
      },
    ],
    says: /the service used up an attempt/,
  },
  {
    name: "the costs of runs are not booked",
    changes: [
      {
        file: "dist/worker/book-cost.cjs",
        from: "function bookCost(stateDir, record) {",
        to: "function bookCost(stateDir, record) { return true;",
      },
    ],
    says: /the books name/,
  },
];

const ends = [];
let missed = 0;
for (const { name, changes, says } of VARIANTS) {
  const launcher = breakBuild((end) => ends.push(end), ...changes);
  const args = [here("test/nights/night.mjs"), ...NIGHT, "--launcher", launcher];
  const { stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
  const wrong = stdout.startsWith("{") ? JSON.parse(stdout.split("\n")[0]).wrong : [stdout];
  const found = wrong.find((one) => says.test(one));
  if (found === undefined) missed++;
  console.log(
    `${found === undefined ? "NOT CAUGHT" : "caught"}: ${name}: ${(found ?? wrong.join("; ")).slice(0, 200)}`,
  );
}
for (const end of ends) end();
console.log(`${VARIANTS.length - missed} caught, ${missed} not caught`);
process.exit(missed === 0 ? 0 : 1);
