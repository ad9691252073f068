/** Shows a long text in the pager of the person: one of the environment, or less. The settings of a repository name none. */
import { findProgram } from "../../host/find-program.ts";
import { spawn } from "../../host/spawn.ts";
import { safeOutput } from "../../text/render.ts";
import type { Context } from "./command-spec.ts";

/** Without a terminal, or without a pager, it prints the lines. */
export async function showLong(
  { out, isTerminal, env, cwd }: Context,
  lines: readonly string[],
): Promise<void> {
  const text = lines.map((line) => `${safeOutput(line)}\n`).join("");
  const named = env["PAGER"] ?? "less";
  const isThere =
    named !== "" && (env["PAGER"] !== undefined || findProgram(named, env["PATH"], cwd));
  if (!isTerminal || !isThere || named === "cat") return await out.raw(text);
  // As git calls it: colours stay, and a short text needs no key. Ctrl-C is for the pager.
  const more = { LESS: "FRX", LV: "-c", ...env };
  const nothing = (): void => {};
  process.on("SIGINT", nothing);
  try {
    const code = await new Promise<number | null>((resolve) => {
      const child = spawn("/bin/sh", ["-c", named], {
        stdio: ["pipe", "inherit", "inherit"],
        env: more,
      });
      child.once("error", () => resolve(127));
      child.once("close", resolve);
      // It may end before it has read everything.
      child.stdin.on("error", nothing);
      child.stdin.end(text);
    });
    if (code === 126 || code === 127) await out.raw(text);
  } finally {
    process.off("SIGINT", nothing);
  }
}
