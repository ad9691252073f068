/** The systemd of a user or of the system: the folder of its units, and calls of systemctl. */
import { spawnSync } from "node:child_process";
import os from "node:os";
import { join } from "node:path";

const SYSTEM_DIR = "/etc/systemd/system";
const ASK_MS = 60_000;

export interface Answer {
  ok: boolean;
  out: string;
  /** Its stderr in one line, or why it could not run. */
  trouble: string;
}

export class Systemd {
  readonly unitDir: string;

  constructor(
    readonly isSystem: boolean,
    private readonly env: NodeJS.ProcessEnv,
  ) {
    const config = env["XDG_CONFIG_HOME"] || join(env["HOME"] || os.homedir(), ".config");
    this.unitDir = isSystem ? SYSTEM_DIR : join(config, "systemd", "user");
  }

  /** The call of systemctl as a person types it. */
  commandLine(...words: string[]): string {
    return ["systemctl", ...(this.isSystem ? [] : ["--user"]), ...words].join(" ");
  }

  ask(...words: string[]): Answer {
    const args = [...(this.isSystem ? [] : ["--user"]), ...words];
    const { status, stdout, stderr, error } = spawnSync("systemctl", args, {
      env: this.env,
      encoding: "utf8",
      timeout: ASK_MS,
    });
    const said = (stderr ?? "").trim().split("\n").join(" ");
    return {
      ok: status === 0,
      out: (stdout ?? "").trim(),
      trouble: said || (error?.message ?? `it ended (${status})`),
    };
  }

  /** Why no systemd can be asked; undefined when one can. */
  whyNot(): string | undefined {
    const { out, trouble } = this.ask("is-system-running");
    // The call also fails when some unit has failed. Then it prints "degraded".
    if (out !== "" && out !== "offline" && out !== "unknown") return undefined;
    return out === "" ? trouble : `it is ${out}`;
  }

  /** Properties of a unit by name, such as ActiveState. Empty when systemd cannot be asked. */
  properties(unit: string, names: readonly string[]): Record<string, string> {
    const { out } = this.ask("show", unit, `--property=${names.join(",")}`);
    const found: Record<string, string> = {};
    for (const one of out.split("\n")) {
      const at = one.indexOf("=");
      if (at > 0) found[one.slice(0, at)] = one.slice(at + 1);
    }
    return found;
  }
}
