/** A run that cannot be prepared gets an outcome, too: else its slot and its task would be lost. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ownerSequence } from "../../src/host/identity.ts";
import { newPool, QUICK_CONFIG } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

const AGENT = `${QUICK_CONFIG}
agents:
  - {name: sh, kind: exec, program: sh, args: [-c, "echo hi"], default: true}
`;

it("a task waits with its reason while what dead workers dropped cannot be locked", async () => {
  const pool = newPool({ config: AGENT });
  const drops = join(pool.state, "drops");
  await pool.start(["--workers", "1"]);
  pool.drop("plain", { exec: ["true"] });
  await pool.result("plain");
  // A dead worker left a folder. The lock for it cannot be taken, because a folder stands where its owner's name belongs.
  const dead = ownerSequence()().replace(/^([^-]+-[^-]+)-[^-]+/, "$1-0");
  fs.mkdirSync(join(drops, `old@s.1.${dead}`), { recursive: true });
  fs.mkdirSync(join(drops, ".lock.owner", "full"), { recursive: true });
  pool.drop("a", { prompt: "go" });
  const word = await waitFor(
    () => pool.events().find((event) => event["task_id"] === "a" && event["error"] !== undefined),
    { what: "a word that it cannot run" },
  );
  expect(word["error"]).toContain("cannot prepare its run: ");
  pool.drop("b", { exec: ["true"] });
  await pool.result("b");

  fs.rmSync(join(drops, ".lock.owner"), { recursive: true });
  expect(await pool.result("a")).toMatchObject({ attempts: 1 });
});
