/** The server of the pages on a free port, and requests as a browser or an attacker sends them. */
import http from "node:http";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { loadPlugins } from "../../../src/app/plugins.ts";
import type { Context } from "../../../src/cli/shell/command-spec.ts";
import { loadSettings } from "../../../src/config/load-settings.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { Actor } from "../../../src/parts/web/act.ts";
import type { Connections } from "../../../src/parts/web/connections.ts";
import { Pages } from "../../../src/parts/web/find-page.ts";
import { listenOn } from "../../../src/parts/web/listen-on.ts";
import { Live } from "../../../src/parts/web/live.ts";
import type { MetricsPage } from "../../../src/parts/web/metrics-page.ts";
import type { Block, Page } from "../../../src/parts/web/page.ts";
import { WebServer } from "../../../src/parts/web/server.ts";
import { Sessions } from "../../../src/parts/web/sessions.ts";
import { VerbReader } from "../../../src/parts/web/verb-reader.ts";

const ASSETS = fileURLToPath(new URL("../../../src/parts/web/assets", import.meta.url));

export interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
}

export interface Request {
  method?: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
}

export interface ActAnswer {
  said?: string;
  done?: number;
  refused?: { id: string; error: { code: string } }[];
  next?: string;
  error?: string | { code: string; message: string; hint?: string };
}

export interface Web {
  port: number;
  sessions: Sessions;
  newLink(): string;
  /** Ends the server before the test does. */
  close(): Promise<void>;
  /** Sends it as it is: no path is made shorter. */
  ask(request: Request): Promise<Answer>;
  /** The headers of a browser that has opened a link. */
  signIn(): Promise<Record<string, string>>;
  /** Presses a button. */
  act(body: unknown): Promise<{ status: number; value: ActAnswer }>;
  /** A page, for a browser that has opened a link. */
  page(path: string): Promise<Page>;
}

/** @param isReadOnly as with --read-only @param env in which it was started */
export async function openWeb(
  state: string,
  sessions = new Sessions(),
  requestMs = 10_000,
  isReadOnly = false,
  env: NodeJS.ProcessEnv = {},
  on = listenOn({ "behind-proxy": false }),
  metrics?: MetricsPage,
  connections?: Connections,
): Promise<Web> {
  const verbs = new VerbReader(contextOf(state, env));
  const { settings } = loadSettings({ stateDir: state, env: {} });
  const plugins = await loadPlugins(settings, state);
  const pages = new Pages(stateTree(state), settings, { isReadOnly, verbs, plugins });
  const actor = isReadOnly ? {} : { actor: new Actor(contextOf(state, env)) };
  const live = new Live(stateTree(state), pages);
  const options = { port: 0, listenOn: on, pages, live, sessions, assets: ASSETS, requestMs };
  const more = { ...(metrics && { metrics }), ...(connections && { connections }) };
  const server = new WebServer({ ...options, ...actor, ...more });
  await server.listen();
  onTestFinished(async () => {
    await server.close();
    pages.close();
  });
  const { port } = server;
  let signedIn: Record<string, string> | undefined;
  const ask = (request: Request): Promise<Answer> => send(port, request);
  const signIn = async (): Promise<Record<string, string>> => {
    const answer = await ask(exchange(port, sessions.newCode()));
    if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.body}`);
    const [cookie = ""] = answer.headers["set-cookie"]?.[0]?.split(";") ?? [];
    const { key } = JSON.parse(answer.body) as { key: string };
    return { cookie, "x-mailchute-key": key };
  };
  return {
    port,
    sessions,
    newLink: () => server.newLink(),
    close: () => server.close(),
    ask,
    signIn,
    act: async (body) => {
      signedIn ??= await signIn();
      const { status, body: text } = await ask(acting(port, signedIn, body));
      return { status, value: JSON.parse(text) as ActAnswer };
    },
    page: async (path) => {
      signedIn ??= await signIn();
      const answer = await ask({ path: pagePath(path), headers: signedIn });
      if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.body}`);
      return JSON.parse(answer.body) as Page;
    },
  };
}

/** As `mailchute web --state STATE` has it. */
function contextOf(state: string, env: NodeJS.ProcessEnv): Context {
  return {
    stateDir: state,
    stateFrom: "flag",
    json: false,
    colour: false,
    isTerminal: false,
    columns: 80,
    cwd: process.cwd(),
    env: { ...process.env, MAILCHUTE_DROP: "", ...env },
    options: {},
    positionals: [],
    subcommand: "",
    rest: undefined,
    out: {
      line: () => undefined,
      json: () => undefined,
      raw: async () => undefined,
      rawError: async () => undefined,
      note: () => undefined,
    },
  };
}

/** What a page of ours sends when a button is pressed. @param session from `signIn` */
export function acting(
  port: number,
  session: Record<string, string>,
  body: unknown,
): Request & { headers: Record<string, string> } {
  const own = { "content-type": "application/json", origin: `http://127.0.0.1:${port}` };
  return {
    method: "POST",
    path: "/api/act",
    headers: { ...session, ...own },
    body: typeof body === "string" ? body : JSON.stringify(body),
  };
}

export function pagePath(path: string): string {
  return `/api/page?path=${encodeURIComponent(path)}`;
}

export function exchange(port: number, code: string): Request {
  return {
    method: "POST",
    path: "/api/session",
    headers: { "content-type": "application/json", origin: `http://127.0.0.1:${port}` },
    body: JSON.stringify({ code }),
  };
}

function send(
  port: number,
  { method = "GET", path, headers = {}, body }: Request,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      { host: "127.0.0.1", port, method, path, headers, agent: false },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part));
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
        );
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

export function blockOf<K extends Block["kind"]>(
  { blocks }: Page,
  kind: K,
  title?: string,
): Extract<Block, { kind: K }> {
  const found = blocks.find(
    (one) => one.kind === kind && (title === undefined || ("title" in one && one.title === title)),
  );
  if (found === undefined)
    throw new Error(`no ${kind} ${title ?? ""} in ${JSON.stringify(blocks)}`);
  return found as Extract<Block, { kind: K }>;
}
