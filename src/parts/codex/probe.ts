/**
 * Tries out what a version of codex can do: sends it requests, and reads in its stream and its rollout file what it did with them.
 */
import fs from "node:fs";
import { join } from "node:path";
import type { Ability, ProgramProbe } from "../../agents/probe/bench.ts";
import { type Bench, factOf } from "../../agents/probe/bench.ts";
import { findRollout } from "./find-rollout.ts";
import { appServerProgram, codexProgram } from "./kind.ts";

const SANDBOX = "Try to leave your folder.";
const INSIDE = "inside";
const OUTSIDE = "outside";

export const codexProbe: ProgramProbe = {
  kind: "codex",
  program: codexProgram,
  scenario: {
    conversations: [
      {
        name: "sandbox",
        marker: SANDBOX,
        steps: [{ run: `echo 1 > ${INSIDE}; echo 1 > ../${OUTSIDE}` }, { say: "ok" }],
      },
      { name: "plain", steps: [{ say: "ok" }] },
    ],
  },
  tryAll,
  trySandbox,
};

async function tryAll(bench: Bench): Promise<Ability[] | undefined> {
  const first = await bench.ask("Say ok.");
  if (first.fault !== undefined) return undefined;
  const id = factOf(first, "session")?.id;
  const usage = factOf(first, "usage");
  const rollout = id === undefined ? undefined : findRollout(join(bench.home, ".codex"), id);
  const resumed = id === undefined ? undefined : await bench.ask("Once more.", id);
  return [
    { name: "JSON stream", can: true, without: "" },
    {
      name: "resume",
      // A version may begin a new thread instead of resuming this one.
      can:
        resumed?.fault === undefined &&
        resumed !== undefined &&
        factOf(resumed, "session")?.id === id,
      without: "a run that was interrupted begins anew",
    },
    { name: "usage", can: usage !== undefined, without: "what it uses is not counted" },
    {
      name: "rollout file",
      can: rollout !== undefined,
      without: "when a usage limit ends is not known: it is tried again after growing pauses",
    },
    {
      name: "app-server",
      can: await canTalk(bench),
      without: "an agent with mode: app-server cannot run; leave mode out",
    },
    {
      name: "price",
      can: typeof usage?.usage.costUsdMicro === "number",
      without: "what it uses is not counted in money",
    },
  ];
}

/** Whether the app-server repeats the id of a message, which proves that the model has read it. */
async function canTalk(bench: Bench): Promise<boolean> {
  const answer = await bench.ask("Say ok.", undefined, [], appServerProgram);
  return answer.fault === undefined && factOf(answer, "message")?.state === "read";
}

/** With these arguments the temporary folder, which holds this test, is outside the sandbox. */
const WITHOUT_TMP = [
  "-c",
  "sandbox_workspace_write.exclude_slash_tmp=true",
  "-c",
  "sandbox_workspace_write.exclude_tmpdir_env_var=true",
];

async function trySandbox(bench: Bench): Promise<string | undefined> {
  const { fault } = await bench.ask(SANDBOX, undefined, WITHOUT_TMP);
  if (fault !== undefined) return fault;
  if (fs.existsSync(join(bench.dir, "..", OUTSIDE)))
    return "a command in its sandbox could write outside its folder";
  return fs.existsSync(join(bench.dir, INSIDE))
    ? undefined
    : "no command can be run in its sandbox on this machine";
}
