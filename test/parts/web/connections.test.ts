/** Another user of the machine opens very many connections, and keeps them: the owner still gets pages, and keeps what is open. */
import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { Connections } from "../../../src/parts/web/connections.ts";
import { Sessions } from "../../../src/parts/web/sessions.ts";
import { newPool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { openWeb, pagePath } from "./open-web.ts";

const STRANGERS = 200;

/** Opens connections that ask for a file, if they ask at all, and stay. @returns how many of them are open */
async function flood(port: number): Promise<() => number> {
  const sockets = await Promise.all(
    Array.from({ length: STRANGERS }, async (_, n) => {
      const socket = net.connect(port, "127.0.0.1");
      onTestFinished(() => void socket.destroy());
      socket.on("error", () => undefined).resume();
      await once(socket, "connect");
      if (n % 2 === 0) socket.write(`GET /app.css HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
      return socket;
    }),
  );
  return () => sockets.filter(({ destroyed: isGone }) => !isGone).length;
}

/** What the owner gets while strangers hold connections. */
async function ownerIn(connections: Connections): Promise<Record<string, unknown>> {
  const web = await openWeb(
    newPool().state,
    new Sessions(),
    ...([undefined, undefined, undefined, undefined, undefined, connections] as const),
  );
  const headers = await web.signIn();
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const options = { host: "127.0.0.1", port: web.port, headers };
  const stream = http.get({ ...options, path: "/api/stream?path=%2F", agent: false });
  stream.on("error", () => undefined);
  const [events] = (await once(stream, "response")) as [http.IncomingMessage];
  events.on("error", () => undefined).resume();
  const openCount = await flood(web.port);
  const got = async (asked: Promise<{ status: number }>): Promise<unknown> =>
    asked.then(({ status }) => status).catch(() => "no answer");
  const page = await got(web.ask({ path: pagePath("/"), headers }));
  const link = await got(web.signIn().then(() => ({ status: 200 })));
  await waitFor(() => openCount() <= 128, { what: "the end of the others" });
  return { page, link, stream: events.complete || events.destroyed ? "ended" : "open" };
}

const WELL = { page: 200, link: 200, stream: "open" };

describe("the owner of the pages", () => {
  it("is not locked out by open connections without a session", async () => {
    expect(await ownerIn(new Connections())).toEqual(WELL);
  });

  it("caught: a limit that counts all connections alike", async () => {
    class FirstCome extends Connections {
      private count = 0;
      override enter(socket: net.Socket): void {
        if (++this.count > 128) socket.destroy();
        socket.once("close", () => this.count--);
      }
    }
    expect(await ownerIn(new FirstCome())).toEqual({
      page: "no answer",
      link: "no answer",
      stream: "open",
    });
  });
});
