/** What doctor finds out about the real programs, in the versions of these checks. */
import { expect, it } from "vitest";
import { Bench } from "../../../src/agents/probe/bench.ts";
import { askVersion } from "../../../src/agents/probe/known-programs.ts";
import { PROBES } from "../../../src/app/program-probes.ts";
import { programPath } from "./install.ts";

const ABILITIES = {
  claude: [
    "stream input",
    "echo of messages",
    "resume",
    "compaction",
    "background tasks",
    "usage",
    "price",
  ],
  codex: ["JSON stream", "resume", "usage", "rollout file", "app-server"],
};

it.each(["claude", "codex"] as const)("finds out what %s can do", async (kind) => {
  const path = programPath(kind);
  const probe = PROBES.find((one) => one.kind === kind)!;
  expect(await askVersion(path, process.env)).toMatchObject({ version: expect.any(String) });
  const abilities = await Bench.with(probe, path, (bench) => probe.tryAll(bench));
  expect(abilities?.filter(({ can }) => can).map(({ name }) => name)).toEqual(ABILITIES[kind]);
});

it("finds that the sandbox of codex holds, or says why not", async () => {
  const probe = PROBES.find(({ kind }) => kind === "codex")!;
  const fault = await Bench.with(probe, programPath("codex"), (bench) => probe.trySandbox!(bench));
  // Some machines have no sandbox for it; that it does not hold must never be the answer.
  expect(fault).toBeOneOf([undefined, "no command can be run in its sandbox on this machine"]);
});
