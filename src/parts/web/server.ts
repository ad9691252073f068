/** Serves the pages. Each request is bounded in size and time. */
import fs from "node:fs";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import https from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { extname, join } from "node:path";
import { describeError } from "../../cli/shell/error-text.ts";
import { messageOf } from "../../core/errors.ts";
import { NAMED, readRegular } from "../../host/regular-file.ts";
import { LINK_PATH } from "../../links/new-link.ts";
import type { Actor } from "./act.ts";
import { Connections } from "./connections.ts";
import { EventStream, type Wanted } from "./event-stream.ts";
import { type Pages, routeOf } from "./find-page.ts";
import {
  ACT_PATH,
  cookiesIn,
  KEY_HEADER,
  METRICS_PATH,
  PAGE_PATH,
  PICTURE_PATH,
  refuse,
  refuseLink,
  SESSION_PATH,
  STREAM_PATH,
} from "./guard.ts";
import type { LinkPage } from "./link-page.ts";
import type { ListenOn } from "./listen-on.ts";
import type { Live } from "./live.ts";
import type { MetricsPage } from "./metrics-page.ts";
import { shown } from "./page.ts";
import type { Sessions } from "./sessions.ts";
import { readWish } from "./verbs.ts";

const CODE_BYTES_MAX = 4096;
const ACT_BYTES_MAX = 65_536;
const REQUEST_MS = 10_000;
/** At most this many pages are made at once. */
const PAGES_MAX = 8;
const ACTS_MAX = 8;

const HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; base-uri 'none'; form-action 'none'; " +
    "frame-ancestors 'none'; require-trusted-types-for 'script'",
  "X-Frame-Options": "DENY",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cache-Control": "no-store",
};
/** Of the page of a signed link: it has forms and no scripts. Without a referrer browsers would not say from where a form comes. */
const LINK_HEADERS: Readonly<Record<string, string>> = {
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy":
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "Referrer-Policy": "same-origin",
};
/** Content types by file extension. */
const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".svg": "image/svg+xml",
};

export interface WebOptions {
  /** 0 for any free port. */
  port: number;
  listenOn: ListenOn;
  pages: Pages;
  live: Live;
  sessions: Sessions;
  /** Left out when pages may change nothing. */
  actor?: Actor;
  /** Left out when messages have no links. */
  links?: LinkPage;
  /** Left out when there is no `/metrics`. */
  metrics?: MetricsPage;
  /** The folder with the files of the pages themselves: HTML, scripts and style. */
  assets: string;
  /** A request that takes longer to arrive ends (default 10,000 ms). */
  requestMs?: number;
  connections?: Connections;
}

export class WebServer {
  port = 0;
  private origins: readonly string[] = [];
  private readonly server: http.Server | https.Server;
  private readonly connections: Connections;
  private readonly files = new Map<string, Buffer>();
  private pagesNow = 0;
  private actsNow = 0;

  constructor(private readonly options: WebOptions) {
    for (const name of fs.readdirSync(options.assets))
      this.files.set(name, readRegular(join(options.assets, name), NAMED));
    const { requestMs = REQUEST_MS } = options;
    const limits = { requestTimeout: requestMs, headersTimeout: requestMs, maxHeaderSize: 16_384 };
    const settings = { ...limits, connectionsCheckingInterval: requestMs / 10 };
    const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
      this.answer(request, response).catch((error: unknown) => {
        if (response.headersSent) response.destroy();
        else send(response, 500, { error: messageOf(error) });
      });
    };
    const { tls } = options.listenOn;
    this.server =
      tls === undefined
        ? http.createServer(settings, onRequest)
        : https.createServer({ ...settings, ...tls }, onRequest);
    this.connections = options.connections ?? new Connections();
    this.server.on("connection", (socket: Socket) => this.connections.enter(socket));
    this.server.maxHeadersCount = 100;
  }

  /** @throws a system error: EADDRINUSE, EACCES, … */
  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.server.once("error", reject);
      this.server.listen(this.options.port, this.options.listenOn.host, resolve);
    });
    this.port = (this.server.address() as AddressInfo).port;
    this.origins = this.options.listenOn.origins(this.port);
  }

  /** Stops the server, and ends open connections. */
  async close(): Promise<void> {
    this.options.live.close();
    await new Promise<void>((resolve) => {
      this.server.close(() => resolve());
      this.server.closeAllConnections();
    });
  }

  /** The address of the pages, such as `http://127.0.0.1:7433`. */
  get origin(): string {
    return this.origins[0] ?? "";
  }

  /** A new link, which works once. */
  newLink(): string {
    return `${this.origin}/#code=${this.options.sessions.newCode()}`;
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", headers } = request;
    const url = parse(request.url ?? "");
    if (url === undefined) return send(response, 400, { error: "this is no path" });
    if (this.options.links !== undefined && url.pathname.startsWith(LINK_PATH))
      return this.answerLink(request, response, url.pathname, this.options.links);
    const refusal = refuse({ method, path: url.pathname, headers }, this.origins);
    if (refusal !== undefined) return send(response, refusal.status, { error: refusal.text });
    const { metrics } = this.options;
    if (metrics !== undefined && url.pathname === METRICS_PATH) {
      const { status, headers: more, body } = metrics.answer(method, headers);
      response.writeHead(status, { ...HEADERS, ...more }).end(body);
      return;
    }
    if (url.pathname === SESSION_PATH) return this.openSession(request, response);
    if (url.pathname.startsWith("/api/")) {
      const { sessions } = this.options;
      const key = headers[KEY_HEADER];
      const ids = cookiesIn(headers, this.cookieName);
      const secrets = [ids, typeof key === "string" ? key : undefined] as const;
      const isAllowed = () => sessions.isOpen(...secrets);
      const is = sessions.check(...secrets);
      if (is === "later")
        return send(response, 429, { error: "too many wrong keys: wait a minute" });
      if (is === "wrong")
        return send(response, 401, { error: "open the link that `mailchute web` prints" });
      this.connections.trust(request.socket);
      if (url.pathname === PAGE_PATH) return this.sendPage(response, url);
      if (url.pathname === PICTURE_PATH) return this.sendPicture(response, url);
      if (url.pathname === STREAM_PATH) return this.stream(request, response, url, isAllowed);
      if (url.pathname === ACT_PATH) return this.act(request, response);
    }
    const name = routeOf(url.pathname) === undefined ? url.pathname.slice(1) : "index.html";
    const file = this.files.get(name);
    if (file === undefined) return send(response, 404, { error: "there is no such page" });
    const type = TYPES[extname(name)] ?? "application/octet-stream";
    response.writeHead(200, { ...HEADERS, "Content-Type": type }).end(file);
  }

  private async openSession(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request, CODE_BYTES_MAX);
    if (body === undefined) return send(response, 413, { error: "the body is too large" });
    const session = this.options.sessions.exchange(codeIn(body));
    if (session === "later")
      return send(response, 429, { error: "too many wrong codes: wait a minute" });
    if (session === "wrong")
      return send(response, 403, { error: "this link was used before, or is older than a minute" });
    this.connections.trust(request.socket);
    const secure = this.origins.every((one) => one.startsWith("https:")) ? "; Secure" : "";
    const cookie = `${this.cookieName}=${session.id}; HttpOnly; SameSite=Strict; Path=/${secure}`;
    send(response, 200, { key: session.key }, { "Set-Cookie": cookie });
  }

  private async act(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { actor } = this.options;
    const body = await readBody(request, ACT_BYTES_MAX);
    if (actor === undefined)
      return send(response, 403, { error: "nothing can be changed here: --read-only was given" });
    if (body === undefined) return send(response, 413, { error: "the body is too large" });
    const wish = readWish(body);
    if (typeof wish === "string") return send(response, 400, { error: wish });
    if (this.actsNow >= ACTS_MAX)
      return send(response, 503, { error: "too many requests at once" }, { "Retry-After": "1" });
    this.actsNow++;
    try {
      send(response, 200, await actor.act(wish));
    } catch (error) {
      const { code, message, hint } = describeError(error);
      const report = { code, message: shown(message), ...(hint && { hint: shown(hint) }) };
      send(response, 409, { error: report });
    } finally {
      this.actsNow--;
    }
  }

  private async answerLink(
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    links: LinkPage,
  ): Promise<void> {
    const { method = "", headers } = request;
    const refusal = refuseLink({ method, headers }, this.origins);
    if (refusal !== undefined) return send(response, refusal.status, { error: refusal.text });
    const form = method === "POST" ? await readBody(request, ACT_BYTES_MAX) : undefined;
    if (method === "POST" && form === undefined)
      return send(response, 413, { error: "the body is too large" });
    await this.withRoom(response, async () => {
      const { status, body } = await links.answer(path, form);
      response.writeHead(status, { ...HEADERS, ...LINK_HEADERS }).end(body);
    });
  }

  private async sendPage(response: ServerResponse, url: URL): Promise<void> {
    const wanted = wantedOf(url);
    if (wanted === undefined) return send(response, 404, { error: "there is no such page" });
    await this.withRoom(response, async () => {
      const { watch: _, ...page } = await this.options.pages.find(wanted.route, wanted.query);
      send(response, 200, page);
    });
  }

  /** Its type comes from its bytes, and is one that runs nothing. */
  private async sendPicture(response: ServerResponse, url: URL): Promise<void> {
    await this.withRoom(response, async () => {
      const found = await this.options.pages.picture(url.searchParams);
      if (found === undefined) return send(response, 404, { error: "there is no such picture" });
      response.writeHead(200, { ...HEADERS, "Content-Type": found.type }).end(found.bytes);
    });
  }

  private async withRoom(response: ServerResponse, answer: () => Promise<void>): Promise<void> {
    if (this.pagesNow >= PAGES_MAX)
      return send(response, 503, { error: "too many requests at once" }, { "Retry-After": "1" });
    this.pagesNow++;
    try {
      await answer();
    } finally {
      this.pagesNow--;
    }
  }

  private stream(
    request: IncomingMessage,
    response: ServerResponse,
    url: URL,
    isAllowed: () => boolean,
  ): void {
    const { live } = this.options;
    const wanted = wantedOf(url);
    if (wanted === undefined || live.isFull) {
      const status = wanted === undefined ? 404 : 503;
      const error =
        wanted === undefined ? "there is no such page" : "too many pages are followed at once";
      send(response, status, { error });
      return;
    }
    const lastId = request.headers["last-event-id"];
    response.writeHead(200, { ...HEADERS, "Content-Type": "text/event-stream; charset=utf-8" });
    response.flushHeaders();
    const stream = new EventStream(response, wanted, typeof lastId === "string" ? lastId : "");
    response.once("close", () => live.remove(stream));
    response.on("error", () => live.remove(stream));
    live.add(stream, isAllowed);
  }

  private get cookieName(): string {
    return `mailchute_${this.port}`;
  }
}

/** The page that a request for data names; undefined when there is no such page. */
function wantedOf(url: URL): Wanted | undefined {
  const wanted = parse(url.searchParams.get("path") ?? "");
  const route = wanted === undefined ? undefined : routeOf(wanted.pathname);
  if (wanted === undefined || route === undefined) return undefined;
  return { route, query: wanted.searchParams, key: wanted.pathname + wanted.search };
}

/** Undefined for anything but a path on this host. */
function parse(text: string): URL | undefined {
  if (!text.startsWith("/") || text.startsWith("//")) return undefined;
  try {
    const url = new URL(text, "http://page.invalid");
    return url.host === "page.invalid" ? url : undefined;
  } catch {
    return undefined;
  }
}

function send(
  response: ServerResponse,
  status: number,
  value: unknown,
  more: Readonly<Record<string, string>> = {},
): void {
  const type = { "Content-Type": "application/json; charset=utf-8" };
  response.writeHead(status, { ...HEADERS, ...type, ...more }).end(JSON.stringify(value));
}

/** Undefined when the body is too large. */
async function readBody(request: IncomingMessage, bytesMax: number): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > bytesMax) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function codeIn(body: string): string {
  try {
    const { code } = JSON.parse(body) as { code?: unknown };
    return typeof code === "string" ? code : "";
  } catch {
    return "";
  }
}
