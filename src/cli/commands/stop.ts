/** `stop`: ends the supervisor of a state tree, and waits until it is gone. */
import { setTimeout as pause } from "node:timers/promises";
import { ErrSupervisorGone } from "../../core/errors.ts";
import { stateTree } from "../../core/state-tree.ts";
import { findSupervisor, openControl, sendCommand } from "../../mailbox/commands/send-command.ts";
import { withdraw } from "../../mailbox/submit/withdraw.ts";
import { duration } from "../../text/render.ts";
import { HANG_TODO, readSupervisor } from "../../view/supervisor.ts";
import { defineCommand, durationOption } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";

/** A supervisor with an older heartbeat does not move (ms): not even a drain keeps it from its heartbeat. */
const LATE_MS = 10_000;

export const command = defineCommand({
  usage: "[--drain] [--timeout S]",
  details: [
    "Running tasks are stopped and given back. The next supervisor runs them again; no attempt is used up. With --drain the running tasks end first.",
  ],
  options: {
    drain: { type: "flag", help: "let running tasks end first" },
    timeout: durationOption(
      "S",
      "give up waiting after this long (default: no limit with --drain, else 60 s)",
    ),
  },
  async run(ctx) {
    const supervisor = findSupervisor(ctx.stateDir);
    if (supervisor === undefined) {
      throw new ErrSupervisorGone("no supervisor runs on this state tree", {
        path: ctx.stateDir,
        hint: "nothing to stop",
      });
    }
    const { id } = await sendCommand(ctx.stateDir, "stop", { drain: ctx.options.drain });
    const limitMs = ctx.options.timeout ?? (ctx.options.drain ? Number.POSITIVE_INFINITY : 60_000);
    const deadline = performance.now() + limitMs;
    while (findSupervisor(ctx.stateDir)?.nonce === supervisor.nonce) {
      if (performance.now() > deadline) {
        ctx.out.note(`pid ${supervisor.pid} has not ended in time${hangText(ctx.stateDir)}`);
        return EXIT.waitTimedOut;
      }
      await pause(20);
    }
    // The supervisor may have ended without taking the command. Withdraw it, so that it does not stop the next supervisor.
    withdraw(openControl(ctx.stateDir), id, () => true);
    if (ctx.json) ctx.out.json({ id, stopped: true, pid: supervisor.pid });
    else ctx.out.line(`stopped (pid ${supervisor.pid})`);
    return EXIT.ok;
  },
});

function hangText(stateDir: string): string {
  const { heartbeat_age_ms: ageMs } = readSupervisor(stateTree(stateDir), Date.now());
  return ageMs !== null && ageMs > LATE_MS
    ? `: it hangs since ${duration(ageMs)}. Do: ${HANG_TODO}`
    : "";
}
