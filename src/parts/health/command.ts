/** `health`: its exit code says whether a pool is well. It reads one file, so that a probe may call it every few seconds. */
import { defineCommand, durationOption } from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { existingTree } from "../../cli/shell/options.ts";
import { duration, safe } from "../../text/render.ts";
import { readSupervisor } from "../../view/supervisor.ts";
import { findAilments } from "./judge.ts";

const LATE_MS = 60_000;

export const command = defineCommand({
  usage: "[--late TIME]",
  details: [
    "For probes of containers and monitors. Exit code 0: a supervisor lives, its heartbeat is not late, the disk has room, and the plan is valid. Exit code 1: something is wrong; it says what, and what to do.",
    "A pool that is paused, or that has failed tasks, is well: see mailchute status.",
  ],
  examples: ["health", "health --late 30s --json | jq -r '.ailments[].code'"],
  options: {
    late: durationOption("TIME", "how old the last heartbeat may be (default 60s)"),
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const nowMs = Date.now();
    const view = readSupervisor(tree, nowMs);
    const ailments = findAilments(view, nowMs, ctx.options.late ?? LATE_MS);
    const { pid = null } = view.document ?? {};
    const { state, heartbeat_age_ms: ageMs } = view;
    if (ctx.json)
      ctx.out.json({ ok: ailments.length === 0, state, pid, heartbeat_age_ms: ageMs, ailments });
    else if (ailments.length === 0)
      ctx.out.line(
        `well: the supervisor (pid ${pid}) is ${state}, its heartbeat is ${duration(ageMs ?? 0)} old`,
      );
    for (const { what, do: todo } of ctx.json ? [] : ailments) {
      ctx.out.line(`not well: ${safe(what)}`);
      ctx.out.line(`  do: ${safe(todo)}`);
    }
    return ailments.length === 0 ? EXIT.ok : EXIT.failed;
  },
});
