/** Bounds how many connections are open. Those of browsers with a session have room of their own, so that no other user locks them out. */
import type { Socket } from "node:net";

const CONNECTIONS_MAX = 128;

export class Connections {
  /** Those that have shown no session, the oldest first, by the address of the other end. */
  private readonly strangers = new Map<string, Socket>();
  private readonly known = new Map<string, Socket>();

  /** Takes a new connection. If there are too many strangers, the oldest one goes: a browser shows its session at once. */
  enter(socket: Socket): void {
    const key = keyOf(socket);
    this.strangers.set(key, socket);
    socket.once("close", () => {
      for (const all of [this.strangers, this.known]) if (all.get(key) === socket) all.delete(key);
    });
    const [oldest] = this.strangers.values();
    if (this.strangers.size > CONNECTIONS_MAX) oldest?.destroy();
  }

  /** Called when a request on this connection has shown a session. With TLS it is another object than the one that entered. */
  trust(socket: Socket): void {
    const key = keyOf(socket);
    const entered = this.strangers.get(key);
    if (entered === undefined || this.known.size >= CONNECTIONS_MAX) return;
    this.strangers.delete(key);
    this.known.set(key, entered);
  }
}

function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
