/** The servers of a storm: one alone, or a cluster of some. */
import { join } from "node:path";
import { freePort, Server } from "../nats/server.ts";

export class Servers {
  readonly all: readonly Server[];

  private constructor(all: readonly Server[]) {
    this.all = all;
  }

  static async start(dir: string, count: number): Promise<Servers> {
    const ports = await Promise.all(Array.from({ length: count }, freePort));
    const routes = ports.map((port) => `nats://127.0.0.1:${port}`);
    const all = ports.map(async (_, at) => {
      const own = ["-n", `server-${at}`, "-cluster", routes[at] ?? ""];
      // Else clients would find a way beside the line that is cut.
      const cluster = [
        ...own,
        "-cluster_name",
        "storm",
        "-routes",
        routes.join(","),
        "--no_advertise",
      ];
      return Server.start(join(dir, `server-${at}`), count > 1 ? cluster : []);
    });
    return new Servers(await Promise.all(all));
  }

  /** All lose their disks at once. */
  async wipe(): Promise<void> {
    await Promise.all(this.all.map((server) => server.kill()));
    for (const server of this.all) server.loseDisk();
    await Promise.all(this.all.map((server) => server.start()));
  }

  async end(): Promise<void> {
    await Promise.all(this.all.map((server) => server.kill()));
  }
}
