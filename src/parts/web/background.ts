/** Starts `web` as its own process, which outlives the terminal: a closed one ends a Node process even under nohup. */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Context } from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { NAMED, openToAppend, readEnd } from "../../host/regular-file.ts";
import { spawn } from "../../host/spawn.ts";
import { safe } from "../../text/render.ts";
import type { Servers } from "./servers.ts";

const LOOK_MS = 50;
/** Of what it says when it cannot start (bytes). */
const SAID_MAX = 4096;

/** Waits until the server listens or its process has ended. @param argv this command line @returns the exit code */
export async function startInBackground(
  { cwd, env, json, out }: Context,
  stateDir: string,
  servers: Servers,
  argv: readonly string[],
): Promise<number> {
  const given = argv.filter((word) => word !== "--detach" && word !== "--json");
  const path = join(stateDir, "web", `${process.pid}.log`);
  makeDirs(join(stateDir, "web"), 1);
  const said = openToAppend(path, NAMED);
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? "", ...given], {
    cwd,
    env,
    detached: true,
    stdio: ["ignore", "ignore", said],
  });
  let ended: number | undefined;
  child.once("exit", (code) => (ended = code ?? EXIT.failed));
  while (ended === undefined && !servers.has(child.pid)) await wait(LOOK_MS);
  const words = readEnd(path, SAID_MAX, NAMED);
  fs.rmSync(path);
  fs.closeSync(said);
  if (ended !== undefined) {
    for (const line of words.trim().split("\n")) out.note(safe(line.replace(/^mailchute: /, "")));
    return ended;
  }
  child.unref();
  const link = servers.newLink({ pid: child.pid });
  if (json) out.json({ link, pid: child.pid });
  else out.line(link ?? "");
  out.note("it runs in the background: mailchute web --link prints a new link, --stop ends it");
  return EXIT.ok;
}
