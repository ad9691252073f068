/** Worker processes of a peer: started before there is work, told to go, and asked how far they are. */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { stopProcess, until } from "../processes.mjs";

export class Crew {
  /** @param script beside this file. @param processes how many. @param settings reach each of them as JSON */
  constructor(script, processes, settings) {
    const path = fileURLToPath(new URL(script, import.meta.url));
    this.members = Array.from({ length: processes }, () => {
      const member = { child: fork(path, [JSON.stringify(settings)]), tally: { count: 0 } };
      member.child.on("message", (message) => {
        if (message === "ready") member.isReady = true;
        else member.tally = message;
      });
      return member;
    });
  }

  async ready() {
    await until(() => this.all((m) => m.isReady), "workers of a peer");
  }

  go() {
    for (const { child } of this.members) child.send("go");
  }

  /** Waits until `total` are done. @returns tasks/s from the first start to the last end */
  async rate(total) {
    await until(
      () => this.all((m) => m.child.connected) && this.sum() >= total,
      `${total} tasks of a peer`,
      { limitMs: 180_000, everyMs: 5 },
    );
    const tallies = this.members.map((m) => m.tally).filter((tally) => tally.count > 0);
    const first = Math.min(...tallies.map((tally) => tally.firstMs));
    const last = Math.max(...tallies.map((tally) => tally.lastMs));
    return { rate: total / ((last - first) / 1000) };
  }

  async stop() {
    await Promise.all(this.members.map(({ child }) => stopProcess(child, "SIGKILL")));
  }

  sum() {
    return this.members.reduce((sum, m) => sum + m.tally.count, 0);
  }

  all(condition) {
    return this.members.every(condition);
  }
}
