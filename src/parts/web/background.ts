/** Starts `web` as its own process, which outlives the terminal: a closed one ends a Node process even under nohup. */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Context } from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { safe } from "../../text/render.ts";
import type { Servers } from "./servers.ts";

const LOOK_MS = 50;

/** Waits until the server listens or its process has ended. @param argv this command line @returns the exit code */
export async function startInBackground(
  { cwd, env, json, out }: Context,
  servers: Servers,
  argv: readonly string[],
): Promise<number> {
  const words = argv.filter((word) => word !== "--detach" && word !== "--json");
  const path = join(os.tmpdir(), `mailchute-web-${randomUUID()}`);
  const said = fs.openSync(path, "wx+", 0o600);
  fs.rmSync(path);
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? "", ...words], {
    cwd,
    env,
    detached: true,
    stdio: ["ignore", "ignore", said],
  });
  let ended: number | undefined;
  child.once("exit", (code) => (ended = code ?? EXIT.failed));
  while (ended === undefined && !servers.has(child.pid)) await wait(LOOK_MS);
  if (ended !== undefined) {
    const buffer = Buffer.alloc(fs.fstatSync(said).size);
    fs.readSync(said, buffer, 0, buffer.length, 0);
    for (const line of buffer.toString().trim().split("\n"))
      out.note(safe(line.replace(/^mailchute: /, "")));
    return ended;
  }
  child.unref();
  const link = servers.newLink({ pid: child.pid });
  if (json) out.json({ link, pid: child.pid });
  else out.line(link ?? "");
  out.note("it runs in the background: mailchute web --link prints a new link, --stop ends it");
  return EXIT.ok;
}
