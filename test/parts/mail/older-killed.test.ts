/** A process that is killed at one of its changing calls while it sorts the records of an earlier version by their roots. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { startProgram } from "../../support/programs.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { sampleOfCalls } from "../../support/walks.ts";
import { NOW, namesIn, newOld, openTree, textsFor } from "./older-records.ts";

/** Each run tries so many calls; `npm run test:mail-kills` all. */
const SAMPLE = 6;
const HOOK = fileURLToPath(new URL("../../crash/hook.cjs", import.meta.url));

it("leaves each agent and message whole, in one folder, for the next one", async () => {
  const sort = async (dir: string, state: string, plan: object) => {
    const report = join(tempDir(), "report");
    const whole = { role: "main", root: dir, report, ...plan };
    const program = startProgram("opens-own.mjs", [state, join(dir, "data")], {
      env: { MAILCHUTE_CRASH: JSON.stringify(whole), NODE_OPTIONS: `--require ${HOOK}` },
    });
    await program.ended;
    const last = fs.readFileSync(report, "utf8").trimEnd().split("\n").at(-1) ?? "{}";
    return { calls: JSON.parse(last).count as number, said: program.stdout() + program.stderr() };
  };
  const newMixed = async () => {
    const old = newOld({ project: "app", branch: "main" });
    const [first, second] = [await old.add("1", "ann"), await old.add("2", "bob", NOW + 60_000)];
    for (const to of ["ann", "bob"]) for (const n of [1, 2]) old.say(to, `${n} for ${to}`);
    return { ...old, first, second };
  };
  const { dir, first } = await newMixed();
  const { calls, said } = await sort(dir, first, { at: 0 });
  expect(said).toContain("app~");
  expect(calls).toBeGreaterThan(15);
  for (const at of sampleOfCalls(calls, SAMPLE)) {
    const mixed = await newMixed();
    await sort(mixed.dir, mixed.first, { at, act: "kill", when: "before" });
    const [one, two] = [
      await openTree(mixed.store, mixed.first),
      await openTree(mixed.store, mixed.second),
    ];
    expect([namesIn(one), namesIn(two)], `call ${at}`).toEqual([["ann"], ["bob"]]);
    for (const [folder, name] of [
      [one, "ann"],
      [two, "bob"],
    ] as const)
      expect(textsFor(folder, name), `call ${at}`).toEqual([`1 for ${name}`, `2 for ${name}`]);
    expect(fs.readdirSync(join(mixed.dir, "data", "scopes")), `call ${at}`).toHaveLength(2);
  }
});
