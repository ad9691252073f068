/** The meter between a client and a service: what passes, what does not, and when. Real servers on loopback. */
import { once } from "node:events";
import fs from "node:fs";
import http, { type IncomingMessage, type RequestListener } from "node:http";
import net, { type AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { MeterNote } from "../../../src/agents/meter.ts";
import type { MeterSettings } from "../../../src/core/settings.ts";
import { openMeter } from "../../../src/parts/meter/server.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

const USED = JSON.stringify({ model: "m", usage: { input_tokens: 3, output_tokens: 2 } });
const JSON_BODY = { "content-type": "application/json" };

async function listen(server: net.Server): Promise<number> {
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    if (server instanceof http.Server) server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

interface Desk {
  /** The address in the place of that of the service. */
  address: string;
  notes: MeterNote[];
  log: () => Record<string, unknown>[];
  runDir: string;
}

/** A meter before a service at this address. */
async function meterOf(
  service: string,
  settings: MeterSettings = {},
  mayAsk = () => true,
): Promise<Desk> {
  const runDir = tempDir();
  const notes: MeterNote[] = [];
  const meter = await openMeter({ settings, runDir, mayAsk, onNote: (note) => notes.push(note) });
  onTestFinished(() => meter.close());
  const address = meter.through(service);
  const path = join(runDir, "requests.jsonl");
  return {
    address,
    notes,
    runDir,
    log: () =>
      fs.existsSync(path)
        ? fs
            .readFileSync(path, "utf8")
            .split("\n")
            .slice(0, -1)
            .map((line) => JSON.parse(line) as Record<string, unknown>)
        : [],
  };
}

async function serviceOf(listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(http.createServer(listener))}`;
}

function ask(address: string, path = "/v1/messages", body = '{"model":"m"}') {
  return fetch(`${address}${path}`, { method: "POST", body });
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
};

describe("a request", () => {
  it("comes to the service as it is, without what belongs to the connection", async () => {
    const seen: unknown[] = [];
    const service = await serviceOf((request, response) => {
      void bodyOf(request).then((body) => {
        const { headers, method, url } = request;
        seen.push({ headers, method, url, body });
        response.writeHead(201, { ...JSON_BODY, "x-own": "1", connection: "x-own" }).end(USED);
      });
    });
    const { address, notes, log } = await meterOf(`${service}/base`);
    const response = await fetch(`${address}/v1/messages?key=secret&a=b`, {
      method: "POST",
      headers: { "x-api-key": "sk-1", "accept-encoding": "gzip", ...JSON_BODY },
      body: '{"model":"asked"}',
    });
    expect(response.status).toBe(201);
    expect(response.headers.get("x-own")).toBeNull();
    expect(await response.text()).toBe(USED);
    expect(seen).toMatchObject([
      {
        method: "POST",
        url: "/base/v1/messages?key=secret&a=b",
        body: '{"model":"asked"}',
        headers: {
          "x-api-key": "sk-1",
          "accept-encoding": "identity",
          "content-length": "17",
          host: new URL(service).host,
        },
      },
    ]);
    const of = "0 asked";
    expect(notes).toEqual([
      { note: "asked", of, size: 17 },
      {
        note: "used",
        of,
        model: "asked",
        usage: { inputTokens: 3, cachedInputTokens: 0, outputTokens: 2, costUsdMicro: null },
      },
      { note: "answered", of, isCounted: true },
    ]);
    expect(log()).toMatchObject([{ path: "/base/v1/messages", status: 201, model: "asked" }]);
    expect(JSON.stringify(log())).not.toMatch(/secret|sk-1/);
  });

  it("of the list of models passes, and says nothing about the quota", async () => {
    const service = await serviceOf((_, response) => response.writeHead(429).end());
    const { address, notes } = await meterOf(service);
    expect((await fetch(`${address}/v1/models`)).status).toBe(429);
    expect(notes).toEqual([]);
  });

  it("with another secret, or to another service, comes nowhere", async () => {
    let count = 0;
    const service = await serviceOf((_, response) => {
      count++;
      response.end();
    });
    const { address } = await meterOf(service);
    const [, secret = ""] = /\/([0-9a-f]{32})\//.exec(address) ?? [];
    const other = address.replace(secret, "0".repeat(32));
    for (const wrong of [other, address.replace(/\/0$/, "/1"), new URL(address).origin])
      expect((await ask(wrong)).status).toBe(404);
    const inside = await meterOf(`${service}/team-a`);
    for (const path of ["/%2e%2e/team-b/v1/messages", "/x/%2e%2e/%2e%2e/team-b"])
      expect((await ask(inside.address, path)).status).toBe(404);
    // A whole address in the place of a path, as a proxy gets it.
    const { port } = new URL(address);
    const socket = net.connect(Number(port), "127.0.0.1");
    socket.end(`GET ${service}/ HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
    let text = "";
    for await (const chunk of socket) text += String(chunk);
    expect(text).toMatch(/^HTTP\/1\.1 404/);
    expect(count).toBe(0);
  });

  it("for a web socket is told at once to ask in the usual way", async () => {
    const service = await serviceOf((_, response) => response.end());
    const { address } = await meterOf(service);
    const { hostname, pathname, port } = new URL(address);
    const request = http.request({
      host: hostname,
      port,
      path: `${pathname}/v1/responses`,
      headers: { connection: "Upgrade", upgrade: "websocket" },
    });
    request.end();
    const [response] = (await once(request, "response")) as [IncomingMessage];
    expect(response.resume().statusCode).toBe(426);
  });

  it("gets no answer when it may not be asked, and the service does not see it", async () => {
    let count = 0;
    const service = await serviceOf((_, response) => {
      count++;
      response.end();
    });
    const asked: number[] = [];
    const { address } = await meterOf(service, {}, () => {
      asked.push(1);
      return false;
    });
    const controller = new AbortController();
    const response = fetch(`${address}/v1/messages`, {
      method: "POST",
      body: "{}",
      signal: controller.signal,
    }).catch(() => "left");
    await waitFor(() => asked.length === 1, { what: "the question" });
    controller.abort();
    expect(await response).toBe("left");
    expect(count).toBe(0);
  });

  it("that may use tokens is held like one to a model, and one that counts them is not", async () => {
    const paths: (string | undefined)[] = [];
    const service = await serviceOf((request, response) => {
      paths.push(request.url);
      response.end("{}");
    });
    const { address } = await meterOf(service, {}, () => false);
    await ask(address, "/v1/messages/count_tokens");
    for (const path of ["/v1/embeddings", "/v1/responses/compact", "/v1/messages/"])
      await expect(
        fetch(`${address}${path}`, {
          method: "POST",
          body: "{}",
          signal: AbortSignal.timeout(200),
        }),
      ).rejects.toThrow();
    expect(paths).toEqual(["/v1/messages/count_tokens"]);
  });

  it("is repeated when the service has closed a kept connection in between", async () => {
    let count = 0;
    const server = http.createServer((_, response) => {
      count++;
      response.writeHead(200, JSON_BODY).end(USED, () => {
        // It says nothing about that to the other side.
        setImmediate(() => response.socket?.destroy());
      });
    });
    const service = `http://127.0.0.1:${await listen(server)}`;
    const { address } = await meterOf(service);
    for (let n = 0; n < 20; n++) expect((await ask(address)).status).toBe(200);
    expect(count).toBe(20);
  });
});

describe("an answer", () => {
  it("comes as it is sent, and is counted before the program has its end", async () => {
    let send: (text: string | undefined) => void = () => {};
    const service = await serviceOf((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      send = (text) => (text === undefined ? response.end() : response.write(text));
      send(`data: {"message":{"usage":{"input_tokens":4}}}\n\n`);
    });
    const { address, notes } = await meterOf(service);
    const response = await ask(address);
    const reader = response.body?.getReader();
    expect(String(Buffer.from((await reader?.read())?.value ?? []))).toContain("input_tokens");
    expect(notes).toMatchObject([{ note: "asked" }, { note: "used", usage: { inputTokens: 4 } }]);
    send(`data: {"usage":{"output_tokens":6}}\n\n`);
    expect(String(Buffer.from((await reader?.read())?.value ?? []))).toContain("output_tokens");
    expect(notes).toMatchObject([
      {},
      {},
      { note: "used", usage: { inputTokens: 0, outputTokens: 6 } },
    ]);
    send(undefined);
    expect((await reader?.read())?.done).toBe(true);
    expect(notes.at(-1)).toMatchObject({ note: "answered", isCounted: true });
  });

  it("that the service cuts is cut for the program, and what was counted stays", async () => {
    const service = await serviceOf((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`data: {"message":{"usage":{"input_tokens":4}}}\n\n`, () =>
        setImmediate(() => response.destroy()),
      );
    });
    const { address, notes, log } = await meterOf(service);
    const response = await ask(address);
    await expect(response.text()).rejects.toThrow();
    await waitFor(() => log().length === 1, { what: "the line of the request" });
    expect(notes).toMatchObject([
      { note: "asked" },
      { note: "used", usage: { inputTokens: 4 } },
      { note: "refused", fault: "overload" },
    ]);
  });

  it("counts as one when the program closes the connection after its last line", async () => {
    const service = await serviceOf((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`data: {"usage":{"input_tokens":4,"output_tokens":1}}\n\ndata: [DONE]\n\n`);
    });
    const { address, notes } = await meterOf(service);
    const controller = new AbortController();
    const { signal } = controller;
    const response = await fetch(`${address}/v1/messages`, { method: "POST", body: "{}", signal });
    await response.body?.getReader().read();
    controller.abort();
    await waitFor(() => notes.at(-1)?.note === "answered", { what: "the answer" });
  });

  it("that breaks in its middle is not asked for again", async () => {
    let count = 0;
    const server = http.createServer((_, response) => {
      count++;
      if (count === 1) {
        response.writeHead(200, JSON_BODY).end(USED);
        return;
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("data: {}\n\n", () => response.socket?.resetAndDestroy());
    });
    const service = `http://127.0.0.1:${await listen(server)}`;
    const { address } = await meterOf(service);
    await (await ask(address)).text();
    await expect(ask(address).then((response) => response.text())).rejects.toThrow();
    expect(count).toBe(2);
  });

  it("that is fetched again is not counted again", async () => {
    const service = await serviceOf((_, response) => response.writeHead(200, JSON_BODY).end(USED));
    const { address, notes } = await meterOf(service);
    await (await fetch(`${address}/v1/responses/resp_1`)).text();
    expect(notes).toEqual([]);
  });

  it("that the program does not wait for ends at the service, too, and refuses nothing", async () => {
    let hasLeft = false;
    const service = await serviceOf((_, response) => {
      response.once("close", () => {
        hasLeft = true;
      });
      response.writeHead(200, { "content-type": "text/event-stream" }).write("data: {}\n\n");
    });
    const { address, notes } = await meterOf(service);
    const controller = new AbortController();
    const response = await fetch(`${address}/v1/messages`, {
      method: "POST",
      body: "{}",
      signal: controller.signal,
    });
    controller.abort();
    await expect(response.text()).rejects.toThrow();
    await waitFor(() => hasLeft, { what: "the end at the service" });
    expect(notes.map(({ note }) => note)).toEqual(["asked", "left"]);
  });

  it("of a service that cannot be reached is an error that names it", async () => {
    const server = http.createServer();
    const port = await listen(server);
    server.close();
    await once(server, "close");
    const { address, notes } = await meterOf(`http://127.0.0.1:${port}`);
    const response = await ask(address);
    expect(response.status).toBe(502);
    expect(await response.text()).toContain(`cannot reach 127.0.0.1:${port} (ECONNREFUSED)`);
    expect(notes.at(-1)).toMatchObject({ note: "refused", fault: "overload", status: null });
  });

  it("of many megabytes passes in little memory, at the pace of the program", async () => {
    const piece = Buffer.alloc(1024 * 1024, "x");
    let sent = 0;
    const service = await serviceOf((_, response) => {
      response.writeHead(200, { "content-type": "text/plain" });
      const more = (): void => {
        while (sent < 200) {
          sent++;
          if (!response.write(piece)) {
            response.once("drain", more);
            return;
          }
        }
        response.end();
      };
      more();
    });
    const { address } = await meterOf(service);
    const response = await ask(address);
    const reader = response.body?.getReader();
    await reader?.read();
    expect(sent).toBeLessThan(100);
    let size = 0;
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      if (done) break;
      size += value?.length ?? 0;
    }
    expect(size).toBeGreaterThan(190 * piece.length);
  });
});

it("adds the version to an address of Anthropic where the library of the program has not", async () => {
  const urls: (string | undefined)[] = [];
  const service = await serviceOf((request, response) => {
    urls.push(request.url);
    response.end();
  });
  const meter = await openMeter({
    settings: {},
    runDir: tempDir(),
    mayAsk: () => true,
    onNote() {},
  });
  onTestFinished(() => meter.close());
  const env: NodeJS.ProcessEnv = { ANTHROPIC_BASE_URL: service };
  meter.enter(env);
  expect(Object.keys(env).sort()).toEqual([
    "ANTHROPIC_BASE_URL",
    "GOOGLE_GEMINI_BASE_URL",
    "NO_PROXY",
    "OPENAI_BASE_URL",
    "no_proxy",
  ]);
  for (const path of ["/v1/messages", "/messages", "/messages?beta=true"])
    await ask(env["ANTHROPIC_BASE_URL"] ?? "", path);
  expect(urls).toEqual(["/v1/messages", "/v1/messages", "/v1/messages?beta=true"]);
});
