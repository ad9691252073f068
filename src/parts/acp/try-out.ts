/** Tries out what a program of kind acp does: it asks a mock of the services of models, which costs nothing and needs no account. */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import type { MockApi } from "../../agents/mock-api/server.ts";
import { startMockApi } from "../../agents/mock-api/server.ts";
import { type Answer, askOnce } from "../../agents/probe/ask-once.ts";
import type { Ability, Handshake } from "../../agents/probe/bench.ts";
import { factOf } from "../../agents/probe/bench.ts";
import { atAddresses } from "../../core/meter-address.ts";
import type { AgentSettings } from "../../core/settings.ts";
import { acpProgram } from "./kind.ts";

/** Such programs take some seconds to begin, and more on a busy machine (ms). */
const LIMIT_MS = 60_000;
/** A program that has said nothing of a refusal for so long is silent about it (ms). */
const SILENT_MS = 20_000;
const NEXT_HOUR = { status: 429, headers: { "retry-after": "3600" } };
const METER = "a meter sees nothing of what it asks, and the mock could not try out the rest";

export const tryOut: NonNullable<Handshake["tryOut"]> = async (agent, { env }) => {
  let isLimited = false;
  const api = await startMockApi(() => (isLimited ? NEXT_HOUR : { say: "ok" }));
  const cwd = fs.mkdtempSync(join(os.tmpdir(), "mailchute-probe-"));
  const own = atMock(agent, api);
  const ask = (prompt: string, sessionId?: string, limitMs = LIMIT_MS): Promise<Answer> =>
    askOnce(
      { program: acpProgram, settings: own, prompt, sessionId },
      { cwd, env: { ...env, ...own.env }, limitMs },
    );
  try {
    const first = await ask("Say ok.");
    const isAsked = api.requests.length > 0;
    if (!hasAnswered(first))
      return isAsked ? { fault: first.fault ?? "it says nothing" } : [METERED(false)];
    const id = factOf(first, "session")?.id;
    const again = id === undefined ? undefined : await ask("Once more.", id);
    isLimited = true;
    const refused = isAsked ? await ask("Once more.", undefined, SILENT_MS) : undefined;
    return [
      METERED(isAsked),
      {
        name: "resume",
        can: again !== undefined && again.fault === undefined,
        without: "a run that was interrupted begins a new session, which is told of the old one",
      },
      {
        name: "usage",
        can: factOf(first, "usage") !== undefined,
        without: "what it uses is only counted by a meter: meter: true",
      },
      {
        name: "end with its input",
        can: !first.wasStopped,
        without: "it is ended by signals",
      },
      ...(refused === undefined ? [] : [tellsLimit(refused)]),
    ];
  } finally {
    await api.close();
    fs.rmSync(cwd, { recursive: true, force: true, maxRetries: 5 });
  }
};

const METERED = (can: boolean): Ability => ({
  name: "address of its service from outside",
  can,
  without: METER,
});

function tellsLimit(refused: Answer): Ability {
  return {
    name: "word about a used up quota",
    can: !refused.wasStopped || factOf(refused, "api_retry") !== undefined,
    without: "mailchute takes a silence of idle_ms for it; a meter sees it at once: meter: true",
  };
}

function hasAnswered({ facts }: Answer): boolean {
  return facts.some((fact) => fact.fact === "turn_ended" && fact.end.fault === undefined);
}

/** The settings of the agent with the addresses of the mock, also in the variables from which programs commonly read one. */
function atMock(agent: AgentSettings, { url }: MockApi): AgentSettings {
  const { env, ...rest } = atAddresses(agent, (address) => `${url}${pathOf(address)}`);
  return {
    ...rest,
    env: {
      ...env,
      ANTHROPIC_BASE_URL: url,
      OPENAI_BASE_URL: `${url}/v1`,
      GOOGLE_GEMINI_BASE_URL: url,
    },
  };
}

function pathOf(address: string): string {
  return new URL(address).pathname.replace(/\/$/, "");
}
