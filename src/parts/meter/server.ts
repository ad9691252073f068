/**
 * The meter of one run: a server on loopback, which lives as long as its program. It passes requests on to the services, and their
 * answers back as they come. A secret in its address keeps other programs of this machine out.
 */
import { randomBytes } from "node:crypto";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { MeteredRun, RunMeter } from "../../agents/meter.ts";
import { Addresses } from "./addresses.ts";
import { Exchange } from "./exchange.ts";
import { refuse } from "./refuse.ts";
import { Replay } from "./replay.ts";
import { RequestLog } from "./request-log.ts";

const SECRET_BYTES = 16;
/** How long a connection stays open without a request (ms). */
const KEPT_MS = 10 * 60_000;
/** A larger request is refused (bytes). */
const BODY_MAX = 256 * 1024 * 1024;
/** The requests that use no tokens. */
const FREE_CALL = /\/count_tokens$|:countTokens$/;
/** The requests that ask a model. Others, such as for the list of models, say nothing about a quota. */
const MODEL_CALL =
  /\/(?:messages|responses|chat\/completions|completions)$|:(?:g|streamG)enerateContent$/;

export async function openMeter(run: MeteredRun): Promise<RunMeter> {
  const { record, replay } = run.settings;
  const recorded = replay === undefined ? undefined : new Replay(replay);
  const secret = randomBytes(SECRET_BYTES).toString("hex");
  const log = new RequestLog(run.runDir, record === true);
  const server = http.createServer((request, response) => {
    take(request, response).catch(() => response.destroy());
  });
  // A connection that is closed between two requests may break the second one.
  server.keepAliveTimeout = KEPT_MS;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", resolve);
  });
  // A connection that it cannot take, for want of a descriptor, is the program's to try again.
  server.on("error", () => {});
  server.unref();
  const { port } = server.address() as AddressInfo;
  const addresses = new Addresses(`http://127.0.0.1:${port}/${secret}`);

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, key, index = "", rest = ""] =
      /^\/([0-9a-f]+)\/(\d{1,3})(?=[/?]|$)(.*)$/s.exec(request.url ?? "") ?? [];
    const target = key === secret ? addresses.target(Number(index), rest) : undefined;
    if (target === undefined) {
      refuse(
        response,
        404,
        "this is the meter of a run of mailchute, and the address is not one of its services",
      );
      return;
    }
    // Some programs try a web socket first, and then ask in the usual way.
    if (request.headers.upgrade?.toLowerCase() === "websocket") {
      refuse(response, 426, "only requests of HTTP can be counted");
      return;
    }
    const body = await readBody(request);
    if (body === undefined) {
      refuse(response, 413, `a request of more than ${BODY_MAX} bytes`);
      return;
    }
    const isPost = request.method === "POST";
    // Without an answer: the run ends, and an error would only look like a fault of the service.
    if (isPost && !FREE_CALL.test(target.pathname) && !run.mayAsk()) return;
    const isCall = isPost && MODEL_CALL.test(target.pathname);
    const service = Number(index);
    const exchange = new Exchange(run, log, { request, response, target, body, isCall, service });
    await (recorded === undefined ? exchange.pass() : exchange.answer(recorded));
  }

  return {
    through: (address) => addresses.through(address),
    enter: (env) => addresses.inEnvironment(env),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Undefined when it is too large. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    // The rest is read and dropped, so that the program gets the answer.
    if (size <= BODY_MAX) chunks.push(chunk);
  }
  return size <= BODY_MAX ? Buffer.concat(chunks) : undefined;
}
