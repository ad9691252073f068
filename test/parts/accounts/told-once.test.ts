/** A limit of an account is told once, however often its gate opens a little and closes again. */
import fs from "node:fs";
import { afterEach, expect, it, vi } from "vitest";
import { accountsDir, GateFile } from "../../../src/agents/accounts/gate-file.ts";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { ownerSequence } from "../../../src/host/identity.ts";
import { NewConditions } from "../../../src/parts/accounts/new-conditions.ts";
import { accounts } from "../../../src/parts/accounts/part.ts";
import type { Tick } from "../../../src/supervisor/environment/service.ts";
import type { PartHost } from "../../../src/supervisor/part.ts";
import { tempDir } from "../../support/temp-dir.ts";

const T0 = Date.UTC(2026, 2, 1, 22);
const MINUTE_MS = 60_000;

afterEach(() => vi.unstubAllEnvs());

/** One night of an account: it is refused, a probe is answered, all is free for a moment, and the next run is refused again. */
async function night(limits?: NewConditions): Promise<{ kinds: string[]; told: string[] }> {
  vi.stubEnv("XDG_STATE_HOME", tempDir());
  let nowMs = 0;
  const told: string[] = [];
  const kinds = new Set<string>();
  const agent = { name: "coder", kind: "claude", types: ["implementer"] };
  const host = {
    env: {
      settings: { ...DEFAULT_SETTINGS, agents: [agent] },
      trays: { clock: { wallMs: () => T0 + nowMs, monotonicMs: () => nowMs } },
      alerts: { alert: (_kind: string, message: string) => told.push(message) },
    },
  } as unknown as PartHost;
  const part = accounts(host, limits) as Required<ReturnType<typeof accounts>>;
  await part.start(false);
  const gate = new GateFile(accountsDir(), "default");
  const look = (): void => {
    nowMs += 600;
    part.work({ nowMs } as Tick);
    for (const { why } of part.gates ?? []) kinds.add(why.split(":")[1] ?? "");
  };
  const refuse = async (): Promise<void> => {
    const refusal = { untilMs: T0 + nowMs + 2000, window: "five_hour", reason: "limit reached" };
    await gate.close(refusal, T0 + nowMs);
    look();
  };
  const owner = ownerSequence()();
  for (let round = 0; round < 10; round++) {
    await refuse();
    nowMs += 2000;
    look();
    await gate.enter(owner, T0 + nowMs);
    look();
    await gate.pass(owner);
    look();
    // All is free for a moment.
    fs.rmSync(gate.path);
    look();
  }
  expect(nowMs).toBeLessThan(MINUTE_MS);
  return { kinds: [...kinds], told };
}

it("tells a person of one limit once, though its gate closes ten times in a minute", async () => {
  const { kinds, told } = await night();
  expect(kinds).toContain(" runs start one by one");
  expect(told).toEqual([expect.stringContaining("account default: no run before")]);
});

it("caught: a limit that is news as soon as its gate was open for a moment", async () => {
  expect((await night(new NewConditions(0))).told).toHaveLength(10);
});
