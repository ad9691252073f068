/** The checks that `doctor --night` adds: one real turn for each account, the sandbox, and the folders of the waiting tasks. */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { accountsOf, reserveOf, withAccount } from "../../agents/accounts/account-settings.ts";
import { accountsDir, GateFile } from "../../agents/accounts/gate-file.ts";
import { askOnce } from "../../agents/probe/ask-once.ts";
import { Bench } from "../../agents/probe/bench.ts";
import { inheritedVariables } from "../../agents/program.ts";
import type { Fact } from "../../agents/stream/facts.ts";
import { PROBES } from "../../app/program-probes.ts";
import { messageOf } from "../../core/errors.ts";
import { withoutMeter } from "../../core/meter-address.ts";
import type { AgentSettings, Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { localTime } from "../../text/local-time.ts";
import { duration } from "../../text/render.ts";
import { checkBases, checkRoom, checkTrees } from "./bases.ts";
import { type CheckResult, failing, ok, warned } from "./check.ts";
import type { AgentProgramFile } from "./programs.ts";
import { lookAtWork } from "./waiting-work.ts";

const TURN_MS_MAX = 2 * 60_000;
const PROMPT = "Answer with the word ok, and do nothing else.";

export async function checkNight(
  programs: readonly AgentProgramFile[],
  settings: Settings,
  { tree, env, tell }: { tree: StateTree; env: NodeJS.ProcessEnv; tell: (text: string) => void },
): Promise<CheckResult[]> {
  const work = lookAtWork(tree, settings.agents);
  const turns = askersOf(programs, settings);
  if (turns.length > 0)
    tell(
      `asks ${turns.map(({ agent }) => agent.name).join(", ")} one question; ` +
        `an answer may take ${duration(TURN_MS_MAX)}`,
    );
  return [
    ...(await Promise.all(turns.map((turn) => checkTurn(turn, settings, env)))),
    ...(await checkSandboxes(programs)),
    ...(await checkBases(work, settings, env)),
    ...(await checkTrees(work)),
    ...checkRoom(work, settings),
  ];
}

interface Asker {
  agent: AgentSettings;
  account: string;
}

/** For each account, its first agent whose program exists. Programs of kind acp are not asked. */
function askersOf(programs: readonly AgentProgramFile[], settings: Settings): Asker[] {
  const askers = new Map<string, Asker>();
  for (const { path, agents } of programs)
    for (const [agent, account] of agents.flatMap((one) =>
      accountsOf(one).map((account) => [one, account] as const),
    )) {
      // Accounts of different programs may have one name.
      const key = `${agent.kind} ${account}`;
      if (path === undefined || askers.has(key) || agent.kind === "acp") continue;
      const own = withoutMeter(
        withAccount({ ...agent, program: path }, account, settings.accounts),
      );
      askers.set(key, { agent: own, account });
    }
  return [...askers.values()];
}

async function checkTurn(
  { agent, account }: Asker,
  settings: Settings,
  env: NodeJS.ProcessEnv,
): Promise<CheckResult> {
  const name = "turn";
  const who = `${agent.name} (account ${account})`;
  const reservePct = reserveOf(account, settings.accounts);
  const entry = new GateFile(accountsDir(env), account, reservePct).look(Date.now());
  if (!entry.may && entry.isTurn !== true)
    return warned(
      name,
      `${who} is not asked: no run starts before ${localTime(entry.untilMs)}`,
      "nothing, if that is early enough",
    );
  const program = PROBES.find(({ kind }) => kind === agent.kind)?.program;
  if (program === undefined)
    return failing(name, `${who}: the kind is not built in`, "build it in");
  const startedMs = performance.now();
  const cwd = fs.mkdtempSync(join(os.tmpdir(), "mailchute-turn-"));
  try {
    const inherited = Object.entries({ ...inheritedVariables(env, settings), ...agent.env });
    const own = inherited.filter(
      ([variable]) => !program.isForeignVariable(variable) || variable in (agent.env ?? {}),
    );
    // The question needs no change of files, so the agent may change none.
    const asker: AgentSettings = { ...agent, permissions: { mode: "read" } };
    const { facts, fault } = await askOnce(
      { program, settings: asker, prompt: PROMPT },
      { cwd, env: Object.fromEntries(own), limitMs: TURN_MS_MAX },
    );
    if (fault !== undefined)
      return failing(name, `${who}: ${fault}`, "run its program by hand, and see to its login");
    const took = duration(performance.now() - startedMs);
    return ok(name, `${who} answers after ${took}${priceText(facts)}`);
  } finally {
    fs.rmSync(cwd, { recursive: true, force: true, maxRetries: 5 });
  }
}

function priceText(facts: readonly Fact[]): string {
  const usage = facts.findLast((fact) => fact.fact === "usage")?.usage;
  if (usage === undefined || usage.costUsdMicro === null) return "";
  return ` for ${(usage.costUsdMicro / 1e6).toFixed(4)} USD`;
}

/** Tries out the sandbox of each program. It depends on the machine, too, so no earlier result is used. */
async function checkSandboxes(programs: readonly AgentProgramFile[]): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const { kind, path, agents } of programs) {
    const users = agents.filter(({ permissions }) => permissions?.mode !== "full");
    const probe = PROBES.find((one) => one.kind === kind);
    const trySandbox = probe?.trySandbox;
    if (path === undefined || users.length === 0 || trySandbox === undefined) continue;
    const fault = await Bench.with(probe as typeof probe & object, path, trySandbox).catch(
      messageOf,
    );
    results.push(
      fault === undefined
        ? ok("sandbox", `the sandbox of ${kind} works on this machine`)
        : failing(
            "sandbox",
            `${users.map(({ name }) => name).join(", ")}: ${fault}`,
            `see what ${kind} needs for its sandbox on this machine`,
          ),
    );
  }
  return results;
}
