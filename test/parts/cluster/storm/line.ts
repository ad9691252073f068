/** The line between a machine and a server, which can be cut: it is taken up, and nothing comes through. */
import { once } from "node:events";
import net from "node:net";

export class Line {
  readonly url: string;
  private readonly server: net.Server;
  private readonly sockets = new Set<net.Socket>();
  private isCut = false;

  private constructor(server: net.Server, to: number) {
    this.server = server;
    const { port } = server.address() as net.AddressInfo;
    this.url = `nats://127.0.0.1:${port}`;
    server.on("connection", (near) => this.join(near, to));
  }

  /** @param to the port of the server */
  static async to(to: number): Promise<Line> {
    const server = net.createServer({ pauseOnConnect: true }).listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Line(server, to);
  }

  cut(): void {
    this.isCut = true;
    for (const socket of this.sockets) socket.pause();
  }

  /** @param isLost what was connected while it was cut is lost */
  mend(isLost: boolean): void {
    this.isCut = false;
    for (const socket of this.sockets)
      if (isLost) socket.destroy();
      else socket.resume();
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private join(near: net.Socket, to: number): void {
    const far = net.connect(to, "127.0.0.1");
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.sockets.add(one);
      one.setNoDelay(true);
      one.on("data", (bytes) => {
        if (!other.write(bytes)) one.pause();
      });
      other.on("drain", () => {
        if (!this.isCut) one.resume();
      });
      one.on("error", () => one.destroy());
      one.once("close", () => {
        this.sockets.delete(one);
        other.destroy();
      });
      if (this.isCut) one.pause();
      else one.resume();
    }
  }
}
