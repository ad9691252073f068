/** Tries out what a version of Claude Code can do: sends it up to four requests, and reads in its stream what it did with them. */

import type { Ability, ProgramProbe } from "../../agents/probe/bench.ts";
import { type Bench, factOf } from "../../agents/probe/bench.ts";
import { claudeProgram } from "./kind.ts";

const FIRST = "Say ok.";
const BACKGROUND = "Run a background task.";

export const claudeProbe: ProgramProbe = {
  kind: "claude",
  program: claudeProgram,
  scenario: {
    conversations: [
      {
        name: "background",
        marker: BACKGROUND,
        steps: [
          { run: "echo built; sleep 1", runWith: { run_in_background: true } },
          { say: "It runs." },
          { say: "It is built." },
        ],
      },
      { name: "plain", steps: [{ say: "ok" }] },
    ],
  },
  tryAll,
};

async function tryAll(bench: Bench): Promise<Ability[] | undefined> {
  const first = await bench.ask(FIRST);
  if (first.fault !== undefined) return undefined;
  const id = factOf(first, "session")?.id;
  const usage = factOf(first, "usage");
  const hasRead = first.facts.some((fact) => fact.fact === "message" && fact.state === "read");
  const resumed = id === undefined ? undefined : await bench.ask("Once more.", id);
  const canResume =
    resumed?.fault === undefined && resumed !== undefined && factOf(resumed, "session")?.id === id;
  const compacted = canResume ? await bench.ask("/compact", id) : undefined;
  const background = await bench.ask(BACKGROUND);
  const tasks = background.facts.filter((fact) => fact.fact === "background");
  return [
    { name: "stream input", can: true, without: "" },
    {
      name: "echo of messages",
      can: hasRead,
      without: "mailchute cannot tell whether it has read a message",
    },
    { name: "resume", can: canResume, without: "a run that was interrupted begins anew" },
    {
      name: "compaction",
      can: compacted !== undefined && factOf(compacted, "compacted") !== undefined,
      without: "a long session may end when its context is full",
    },
    {
      name: "background tasks",
      can: background.fault === undefined && tasks.some(({ ids }) => ids.length > 0),
      without: "a run may end while a task of its own still works",
    },
    { name: "usage", can: usage !== undefined, without: "what it uses is not counted" },
    {
      name: "price",
      // The reports before its result have no price.
      can: first.facts.some((fact) => fact.fact === "usage" && fact.usage.costUsdMicro !== null),
      without: "what it uses is not counted in money",
    },
  ];
}
