/** What is not ours on the command line: plugins of the tree with their verbs, and programs named `mailchute-NAME` on PATH. */
import os from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { parseArgs } from "node:util";
import { loadPlugins } from "../../app/plugins.ts";
import type { ClosedGate, GateFacts } from "../../core/documents.ts";
import { ErrPlugin } from "../../core/errors.ts";
import { factsOf, joinGates } from "../../core/gates.ts";
import { laneOf, readLane } from "../../core/waiting-task.ts";
import { findProgram } from "../../host/find-program.ts";
import { listDir } from "../../host/list-dir.ts";
import { spawn } from "../../host/spawn.ts";
import type { LoadedPlugin } from "../../plugin.ts";
import { safe } from "../../text/render.ts";
import { idsIn } from "../../view/find-task.ts";
import { askOwnGates } from "../../view/supervisor.ts";
import { readWaiting } from "../../view/task-rows.ts";
import type { Context } from "./command-spec.ts";
import { openSettings, treeOf } from "./options.ts";
import { REGISTRY } from "./registry.ts";
import { findStateDir, isInsideRun, mayHavePlugins } from "./state-dir.ts";

type Here = Pick<Context, "stateDir" | "env" | "out" | "cwd">;

/** About how many waiting tasks the gates are asked, and how often (ms). */
const ASKED = { tasks: 200, againMs: 1000 };

/**
 * The plugins of the tree. None, and a note, when one cannot be used: then only `run` is refused. While no supervisor asks their gates,
 * this command does.
 */
export function usablePlugins(here: Here): Promise<readonly LoadedPlugin[]> {
  usable ??= findUsable(here);
  return usable;
}

let usable: Promise<readonly LoadedPlugin[]> | undefined;

async function findUsable(here: Here): Promise<readonly LoadedPlugin[]> {
  const { stateDir, env, out } = here;
  if (!mayHavePlugins(stateDir, env)) return [];
  // A fault of config.yaml is told by the verbs that need it.
  const settings = await openSettings({ stateDir, env }).then(
    (loaded) => loaded.settings,
    () => undefined,
  );
  try {
    if (settings === undefined) return [];
    const plugins = await loadPlugins(settings, stateDir);
    const gates = plugins.flatMap((one) => one.gates);
    const tree = treeOf(here);
    let told: ClosedGate[] = [];
    let againMs = 0;
    askOwnGates(() => {
      const nowMs = Date.now();
      if (gates.length === 0 || nowMs < againMs) return told;
      againMs = nowMs + ASKED.againMs;
      const facts = idsIn(tree, "inbox", ASKED.tasks).map((id) => {
        const path = join(tree.mailbox, "inbox", `${id}.json`);
        const place = { id, state: "waiting", path, name: undefined } as const;
        return JSON.stringify(factsOf(readLane(laneOf(readWaiting(place, settings.agents)))));
      });
      const different = [...new Set(facts)].map((one) => JSON.parse(one) as GateFacts);
      told = joinGates(
        different.flatMap((one) => gates.flatMap((gate) => gate.ask(one, nowMs) ?? [])),
      );
      return told;
    });
    return plugins;
  } catch (error) {
    if (!(error instanceof ErrPlugin)) throw error;
    const { code, message, path } = error;
    out.note(safe(`${code}: ${message}${path === undefined ? "" : ` (${path})`}`));
    return [];
  }
}

/** Adds the verbs of the tree's plugins to ours, which win. @returns the programs on PATH that are verbs, too */
export async function addForeignVerbs(here: Here): Promise<ReadonlyMap<string, string>> {
  const { env } = here;
  if (isInsideRun(env)) return new Map();
  for (const { plugin } of await usablePlugins(here))
    for (const [verb, { summary, command }] of Object.entries(plugin.verbs ?? {}))
      if (!Object.hasOwn(REGISTRY, verb))
        REGISTRY[verb] = { group: "Plugins", summary, load: async () => ({ command }) };
  // A directory that depends on where the command is called may belong to any user.
  const path = (env["PATH"] ?? "").split(delimiter).filter((dir) => isAbsolute(dir));
  const verbs = path.flatMap((dir) =>
    listDir(dir).flatMap((name) => /^mailchute-([a-z][a-z0-9-]*)$/.exec(name)?.[1] ?? []),
  );
  return new Map(
    verbs.sort().flatMap((verb): [string, string][] => {
      const program = findProgram(`mailchute-${verb}`, path.join(delimiter), "/");
      return program === undefined || Object.hasOwn(REGISTRY, verb) ? [] : [[verb, program]];
    }),
  );
}

/**
 * Looks for a verb that is not ours. Afterwards, the verb of a plugin is one of `REGISTRY`.
 * @param args the words before and after the verb
 * @param words only those after it
 * @returns the exit code, when it was a program, which has run
 */
export async function runForeign(
  verb: string,
  { args, words, ...here }: Omit<Here, "stateDir"> & { args: string[]; words: string[] },
): Promise<number | undefined> {
  const { env, cwd } = here;
  const options = { state: { type: "string", short: "s" } } as const;
  const { state } = parseArgs({ args, options, strict: false }).values;
  const { dir } = findStateDir(typeof state === "string" ? state : undefined, env, cwd);
  const program = (await addForeignVerbs({ ...here, stateDir: dir })).get(verb);
  if (program === undefined) return undefined;
  const child = spawn(program, words, {
    stdio: "inherit",
    env: { ...env, MAILCHUTE_STATE: dir, UV_THREADPOOL_SIZE: undefined },
  });
  // The terminal sends its signals to the program as well; we wait for its end.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => signal !== "SIGINT" && child.kill(signal));
  return await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) =>
      resolve(code ?? 128 + (signal === null ? 0 : os.constants.signals[signal])),
    );
  });
}
