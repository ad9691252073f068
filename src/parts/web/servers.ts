/**
 * Which servers of the pages run on a tree, so that `web --link` can make a link to one that runs in the background: it leaves a code in
 * `web/codes/`, which only the owner of the tree can write, and the server takes it once.
 */
import { randomBytes } from "node:crypto";
import { isNumber, isText, type Of, shape } from "../../core/shape.ts";
import { Documents } from "../../host/document-store.ts";
import { judgeSaved, savedSelf } from "../../host/identity.ts";
import { isSame } from "./secrets.ts";

const CODE_MS = 60_000;

const server = shape({
  place: isText,
  pid: isNumber,
  start_ticks: isNumber,
  port: isNumber,
  /** As people open it. */
  origin: isText,
});
type Server = Of<typeof server>;
/** Which servers; those of any port and pid when they are left out. */
interface Wanted {
  port?: number | undefined;
  pid?: number | undefined;
}
const code = shape({ code: isText, at_ms: isNumber });

export class Servers {
  private readonly servers;
  private readonly codes;

  constructor(stateDir: string) {
    this.servers = new Documents(stateDir, "web/servers", server);
    this.codes = new Documents(stateDir, "web/codes", code);
  }

  /** Tells that this process serves the pages. A tree that cannot be written has no such links. */
  announce(port: number, origin: string): void {
    const self = savedSelf();
    try {
      for (const [name, one] of this.servers.readAll())
        if (judgeSaved(one) === "dead") this.servers.remove(name);
      this.servers.replace(String(self.pid), { ...self, port, origin });
    } catch {
      // The link that the terminal shows works.
    }
  }

  retract(): void {
    for (const one of [this.servers, this.codes])
      try {
        one.remove(String(process.pid));
      } catch {
        // A reader judges by the process.
      }
  }

  has(pid: number | undefined): boolean {
    return this.live({ pid }).length > 0;
  }

  private live({ port, pid }: Wanted): [string, Server][] {
    return this.servers
      .readAll()
      .filter(
        ([, one]) =>
          judgeSaved(one) === "alive" &&
          (port ?? one.port) === one.port &&
          (pid ?? one.pid) === one.pid,
      );
  }

  /** Ends the servers that run. @returns their ports */
  stop(wanted: Wanted): number[] {
    const live = this.live(wanted);
    for (const [, { pid }] of live) process.kill(pid, "SIGTERM");
    return live.map(([, { port }]) => port);
  }

  /** A new link to a server that runs. @returns undefined when there is none. @throws a system error */
  newLink(wanted: Wanted): string | undefined {
    const [live] = this.live(wanted);
    if (live === undefined) return undefined;
    const [name, { origin }] = live;
    const text = randomBytes(24).toString("base64url");
    this.codes.replace(name, { code: text, at_ms: Date.now() });
    return `${origin}/#code=${text}`;
  }

  /** Whether this code was left for this process within a minute. It works once. */
  takes(text: string): boolean {
    const name = String(process.pid);
    const left = this.codes.read(name);
    if (left === undefined || !isSame(text, left.code)) return false;
    this.codes.remove(name);
    return Math.abs(Date.now() - left.at_ms) < CODE_MS;
  }
}
