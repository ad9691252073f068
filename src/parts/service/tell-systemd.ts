/** Tells systemd the state of the supervisor. Runs systemd-notify, because Node has no Unix datagram sockets. See sd_notify(3). */

import { spawn } from "../../host/spawn.ts";
import { UNIT_VARIABLE } from "./unit.ts";

/** Limit for systemd-notify (ms). It waits until systemd has read its message, so that systemd can see which process sent it. */
const NOTIFY_MS = 10_000;

export class SystemdSocket {
  /** A third of the time after which systemd kills a process that says nothing (ms); undefined without a watchdog. */
  readonly pingMs: number | undefined;
  private readonly env: NodeJS.ProcessEnv;
  private running = 0;

  /**
   * Takes the variables of systemd out of `env`, so that no task can speak for this process.
   * @returns undefined when no unit of `mailchute service` started this process. Another program that uses the library speaks for
   * itself
   */
  static from(env: NodeJS.ProcessEnv): SystemdSocket | undefined {
    if (env[UNIT_VARIABLE] === undefined) return undefined;
    const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: watchdog, WATCHDOG_PID: pid } = env;
    for (const name of [UNIT_VARIABLE, "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"])
      delete env[name];
    if (socket === undefined || socket === "") return undefined;
    const isMine = pid === undefined || Number(pid) === process.pid;
    return new SystemdSocket(socket, isMine ? Number(watchdog) / 1000 : Number.NaN, env["PATH"]);
  }

  private constructor(socket: string, watchdogMs: number, path: string | undefined) {
    this.env = { PATH: path ?? "", NOTIFY_SOCKET: socket };
    this.pingMs = watchdogMs > 0 ? watchdogMs / 3 : undefined;
  }

  /** @param lines such as READY=1. @param onCannot called with the reason when systemd could not be told */
  tell(lines: readonly string[], onCannot: (reason: string) => void): void {
    this.running++;
    const child = spawn("systemd-notify", lines, { env: this.env, stdio: "ignore" });
    // The timeout of `spawn` itself would keep this process alive when there is no such program.
    const limit = setTimeout(() => child.kill("SIGKILL"), NOTIFY_MS).unref();
    const end = (trouble: string | undefined): void => {
      this.running--;
      clearTimeout(limit);
      if (trouble !== undefined) onCannot(trouble);
    };
    child.once("error", ({ message }) => end(message));
    child.once("exit", (code, signal) =>
      end(code === 0 ? undefined : `systemd-notify ended (${code ?? signal})`),
    );
    child.unref();
  }

  /** Says that the supervisor works, unless an earlier message is still on its way. */
  ping(onCannot: (reason: string) => void): void {
    if (this.running === 0) this.tell(["WATCHDOG=1"], onCannot);
  }
}
