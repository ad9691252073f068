/** A NATS server of a test, with a disk that can be lost. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { waitFor } from "../../../support/wait-for.ts";
import { findServer } from "./found.ts";

/** Below those that the system gives to connections. */
const PORTS = { from: 15_000, count: 15_000 };

export class Server {
  readonly port: number;
  private readonly dir: string;
  private readonly more: readonly string[];
  private child: ChildProcess | undefined;
  private hasAnswered = false;

  private constructor(dir: string, port: number, more: readonly string[]) {
    this.dir = dir;
    this.port = port;
    this.more = more;
  }

  /**
   * @param dir holds its disk
   * @param more arguments beside those of a server that is alone
   */
  static async start(dir: string, more: readonly string[] = []): Promise<Server> {
    const server = await Server.prepare(dir, more);
    await server.start();
    return server;
  }

  /** It is not started yet. */
  static async prepare(dir: string, more: readonly string[] = []): Promise<Server> {
    return new Server(join(dir, "nats"), await freePort(), more);
  }

  get isRunning(): boolean {
    const { child } = this;
    return child !== undefined && child.exitCode === null && child.signalCode === null;
  }

  /** Whether it runs and has answered since it was started. */
  get isReady(): boolean {
    return this.isRunning && this.hasAnswered;
  }

  get pid(): number | undefined {
    return this.isRunning ? this.child?.pid : undefined;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const path = findServer() ?? "nats-server";
    const args = ["-js", "-sd", this.dir, "-a", "127.0.0.1", "-p", String(this.port)];
    args.push(...this.more);
    this.hasAnswered = false;
    this.child = spawn(path, args, { stdio: "ignore" });
    await waitFor(() => canConnect(this.port), { what: "the NATS server" });
    this.hasAnswered = true;
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const { child } = this;
    if (child === undefined || !this.isRunning) return;
    child.kill(signal);
    if (signal === "SIGKILL" || signal === "SIGTERM") await once(child, "exit");
  }

  /** Its machine has lost the disk. */
  async wipe(): Promise<void> {
    await this.kill();
    this.loseDisk();
    await this.start();
  }

  /** It must have ended. */
  loseDisk(): void {
    fs.rmSync(this.dir, { recursive: true, force: true });
  }
}

/**
 * A port that no connection gets by itself, as those that the system chooses from would: a server that is dead for a while finds it free.
 * Those who look for it there would even reach themselves.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.from + Math.floor(Math.random() * PORTS.count);
    const server = net.createServer();
    try {
      await once(server.listen(port, "127.0.0.1"), "listening");
    } catch {
      continue;
    }
    server.close();
    await once(server, "close");
    return port;
  }
}

async function canConnect(port: number): Promise<boolean> {
  const socket = net.connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
