/** Checks coding agents: what their programs can do and write, whether prices are known, and whether their accounts are open. */
import fs from "node:fs";
import { dirname, sep } from "node:path";
import { accountsOf, reserveOf, withAccount } from "../../agents/accounts/account-settings.ts";
import { accountsDir, GateFile } from "../../agents/accounts/gate-file.ts";
import type { Ability } from "../../agents/probe/bench.ts";
import { Bench } from "../../agents/probe/bench.ts";
import {
  askVersion,
  recallAbilities,
  rememberAbilities,
} from "../../agents/probe/known-programs.ts";
import { HANDSHAKES, PROBES } from "../../app/program-probes.ts";
import { messageOf } from "../../core/errors.ts";
import { withoutMeter } from "../../core/meter-address.ts";
import { wallsOf } from "../../core/sandbox.ts";
import type { AgentSettings, Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { explainNoWalls } from "../../host/bubblewrap.ts";
import { localTime } from "../../text/local-time.ts";
import { type CheckResult, failing, ok, warned } from "./check.ts";
import type { AgentProgramFile } from "./programs.ts";

/** This ability is reported apart from the others, because a table of prices can replace it. */
const PRICE = "price";
/** The handshake knows what the program says of it, and the test what it does. */
const RESUME = "resume";

/** @param isAgain true to try out each program again, even if the abilities of its version are known */
export async function checkAgents(
  programs: readonly AgentProgramFile[],
  settings: Settings,
  { tree, env, isAgain }: { tree: StateTree; env: NodeJS.ProcessEnv; isAgain: boolean },
): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const program of programs) {
    const { checks, abilities } = await checkProgram(program, {
      env,
      isAgain,
      dir: dirname(tree.dir),
    });
    results.push(...checks, ...checkPrices(program, abilities, settings));
  }
  const agents = programs.flatMap((program) => program.agents);
  results.push(
    ...checkReach(agents, settings, tree),
    ...checkGates(agents, settings, env),
    ...checkLogins(agents, settings),
  );
  return results;
}

async function checkProgram(
  program: AgentProgramFile,
  { env, isAgain, dir }: { env: NodeJS.ProcessEnv; isAgain: boolean; dir: string },
): Promise<{ checks: CheckResult[]; abilities: readonly Ability[] }> {
  const { kind, name, path, agents } = program;
  const users = agents.map((agent) => agent.name).join(", ");
  const none = (check: CheckResult) => ({ checks: [check], abilities: [] });
  if (path === undefined)
    return none(
      failing(
        kind,
        `${users}: there is no program ${name}`,
        kind === "acp" ? "install it, or mend `command`" : "install it, or set `program`",
      ),
    );
  const shaken = await tryHandshake(program, { env, isAgain, dir });
  if (shaken !== undefined) return { checks: shaken, abilities: [] };
  const complain = agents.length > 0 ? failing : warned;
  const told = await askVersion(path, env);
  if ("fault" in told)
    return none(complain(kind, `${path}: ${told.fault}`, `see what ${name} --version does`));
  const { version } = told;
  const shown = `${path} ${version}`;
  const known = isAgain ? undefined : recallAbilities(env, path, version);
  const tried = known ?? (await tryOut(program, path));
  if (!Array.isArray(tried))
    return none(
      complain(kind, `${shown} gives no good answer to a test: ${tried}`, "try another version"),
    );
  const forgets = known === undefined ? remember(env, path, version, tried) : undefined;
  return {
    checks: [...tellAbilities(kind, shown, users, tried), ...(forgets ?? [])],
    abilities: tried,
  };
}

/** Undefined for a kind with a probe of its own. */
async function tryHandshake(
  { kind, name, path = name, agents }: AgentProgramFile,
  { env, isAgain, dir: cwd }: { env: NodeJS.ProcessEnv; isAgain: boolean; dir: string },
): Promise<CheckResult[] | undefined> {
  const [agent] = agents;
  const handshake = HANDSHAKES.find((one) => one.kind === kind);
  if (handshake === undefined || agent === undefined) return undefined;
  const own = { ...agent, command: [path, ...(agent.command ?? []).slice(1)] };
  const plain = withoutMeter(own);
  const told = await handshake.shake(plain, { env: { ...env, ...plain.env }, cwd });
  const users = agents.map((one) => one.name).join(", ");
  const todo = `try it by hand: ${plain.command?.join(" ")}`;
  if ("fault" in told) return [failing(kind, `${users}: ${path}: ${told.fault}`, todo)];
  const shown = [`${path} ${told.name}`, ...told.notes].join("; ");
  const known = isAgain ? undefined : recallAbilities(env, path, told.name);
  if (known !== undefined || !isAgain || handshake.tryOut === undefined)
    return tellAbilities(kind, shown, users, known ?? told.abilities);
  const tried = await handshake.tryOut(own, { env });
  if ("fault" in tried)
    return [
      ...tellAbilities(kind, shown, users, told.abilities),
      warned(kind, `it gives no good answer to a test: ${tried.fault}`, todo),
    ];
  const abilities = tried.some((one) => one.name === RESUME)
    ? tried
    : [...told.abilities, ...tried];
  return [
    ...tellAbilities(kind, shown, users, abilities),
    ...remember(env, path, told.name, abilities),
  ];
}

/** @returns what the program can do, or why that is not known */
async function tryOut({ kind }: AgentProgramFile, path: string): Promise<Ability[] | string> {
  try {
    const probe = PROBES.find((one) => one.kind === kind);
    if (probe === undefined) return "nothing here can try it out";
    return await Bench.with(
      probe,
      path,
      async (bench) => (await probe.tryAll(bench)) ?? bench.fault ?? "it said nothing",
    );
  } catch (error) {
    return messageOf(error);
  }
}

function remember(
  env: NodeJS.ProcessEnv,
  path: string,
  version: string,
  abilities: Ability[],
): CheckResult[] {
  try {
    rememberAbilities(env, path, version, abilities);
    return [];
  } catch (error) {
    const todo = "nothing: the next doctor finds it out again";
    return [warned("programs", `what ${path} can do is not remembered: ${messageOf(error)}`, todo)];
  }
}

function tellAbilities(
  kind: string,
  shown: string,
  users: string,
  abilities: readonly Ability[],
): CheckResult[] {
  const told = abilities.filter(({ name }) => name !== PRICE);
  const can = told.filter((ability) => ability.can).map(({ name }) => name);
  const by = users === "" ? "no agent uses it" : `used by ${users}`;
  return [
    ok(kind, `${shown} (${by}): ${can.join(", ")}`),
    ...told
      .filter((ability) => !ability.can)
      .map(({ name, without }) =>
        warned(kind, `this version has no ${name}: ${without}`, "nothing, or use another version"),
      ),
  ];
}

/** A program that gives no price needs a table of prices. Without one its use counts as free. */
function checkPrices(
  { kind, agents }: AgentProgramFile,
  abilities: readonly Ability[],
  { prices }: Settings,
): CheckResult[] {
  if (abilities.find(({ name }) => name === PRICE)?.can !== false) return [];
  return agents
    .filter(({ model }) => model === undefined || prices[model] === undefined)
    .map(({ name, model }) =>
      warned(
        "prices",
        `${name}: ${kind} says no price, and config.yaml has none for ${model ?? "its model, which has no name there"}: what it uses is not counted in money`,
        "give the agent a `model`, and `prices` a line for it",
      ),
    );
}

function checkReach(
  agents: readonly AgentSettings[],
  settings: Settings,
  tree: StateTree,
): CheckResult[] {
  const results: CheckResult[] = [...checkWalls(settings)];
  const open = agents
    .filter((agent) => wallsOf(agent, settings) === undefined && isUnsandboxed(agent))
    .map(({ name }) => name);
  if (open.length > 0)
    results.push(
      warned(
        "sandbox",
        `without a sandbox (${open.join(", ")}): it can read and write the state tree, and all else that you can`,
        explainNoWalls() === undefined
          ? "put it behind walls (sandbox: {} in config.yaml), or give it only work that you would run yourself"
          : "give it only work that you would run yourself",
      ),
    );
  for (const agent of agents) {
    const folder = foldersOf(agent).find((each) => holds(each, tree.dir));
    if (folder !== undefined)
      results.push(
        failing(
          "sandbox",
          `${agent.name} does not start: its sandbox can write to ${folder}, which holds the state tree`,
          "keep the state tree elsewhere",
        ),
      );
    else if (foldersOf(agent).length > 0)
      results.push(
        ok(
          "sandbox",
          `${agent.name} runs only tasks whose cwd does not hold the state tree, so not in ${dirname(tree.dir)}`,
        ),
      );
  }
  return results;
}

/** Whether this machine has the walls that the settings ask for. */
function checkWalls(settings: Settings): CheckResult[] {
  const asked = [{}, ...settings.agents].flatMap((agent) => wallsOf(agent, settings) ?? []);
  if (asked.length === 0) return [];
  const fault = explainNoWalls();
  if (fault === undefined) return [ok("sandbox", "bubblewrap builds the walls of `sandbox` here")];
  const isOpen = asked.every(({ missing }) => missing === "open");
  const what = isOpen ? "their programs run in the open" : "the pool does not start";
  return [(isOpen ? warned : failing)("sandbox", `no walls here, so ${what}`, fault)];
}

function programOf({ kind }: AgentSettings) {
  return PROBES.find((probe) => probe.kind === kind)?.program;
}

function foldersOf(agent: AgentSettings): string[] {
  return programOf(agent)?.writableFolders(agent) ?? [];
}

function isUnsandboxed(agent: AgentSettings): boolean {
  const hasSandbox = PROBES.find(({ kind }) => kind === agent.kind)?.trySandbox !== undefined;
  return !hasSandbox || agent.permissions?.mode === "full";
}

function holds(folder: string, dir: string): boolean {
  const [outer, inner] = [folder, dir].map((path) => {
    try {
      return fs.realpathSync(path);
    } catch {
      return path;
    }
  }) as [string, string];
  return inner === outer || inner.startsWith(outer.endsWith(sep) ? outer : outer + sep);
}

function checkGates(
  agents: readonly AgentSettings[],
  { accounts: all }: Settings,
  env: NodeJS.ProcessEnv,
): CheckResult[] {
  const accounts = new Set(agents.flatMap((agent) => accountsOf(agent)));
  return [...accounts].map((account) => {
    const reservePct = reserveOf(account, all);
    const file = new GateFile(accountsDir(env), account, reservePct);
    const entry = file.look(Date.now());
    const name = `account ${account}`;
    const kept = reservePct === 0 ? "" : `; the last ${reservePct} % are left to its owner`;
    if (entry.may && entry.gate.status === "open") return ok(name, `open${kept}`);
    if (entry.may || entry.isTurn === true)
      return ok(name, `a limit is over: runs start one after another${kept}`);
    const todo =
      entry.gate.status === "open"
        ? "To use the rest, too: lower its reserve_pct"
        : `To try it before: rm ${file.path}`;
    return warned(
      name,
      `no run starts before ${localTime(entry.untilMs)}: ${entry.why}`,
      `nothing: runs start by themselves then. ${todo}`,
    );
  });
}

/** Accounts of one agent that set the same variables are one login, so they share one quota. */
function checkLogins(agents: readonly AgentSettings[], { accounts: all }: Settings): CheckResult[] {
  return agents.flatMap((agent) => {
    const byLogin = new Map<string, string[]>();
    for (const account of accountsOf(agent)) {
      const { env = {} } = withAccount(agent, account, all);
      const login = JSON.stringify(Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1)));
      byLogin.set(login, [...(byLogin.get(login) ?? []), account]);
    }
    return [...byLogin.values()]
      .filter((alike) => alike.length > 1)
      .map((alike) =>
        warned(
          "accounts",
          `${agent.name}: ${alike.join(" and ")} lead to one login, so none of them helps when it is at its limit`,
          "give each its own env under accounts in config.yaml: CLAUDE_CONFIG_DIR or CODEX_HOME, with another folder",
        ),
      );
  });
}
