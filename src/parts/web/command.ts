/** `web`: serves pages of the pool to a browser on this machine. Changes go through the verbs of the command line. */
import { resolve } from "node:path";
import { type Context, defineCommand, ErrUsage, textOption } from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { usablePlugins } from "../../cli/shell/foreign-verbs.ts";
import { dropOf, insideRun } from "../../cli/shell/inside-run.ts";
import { existingTree, existsTree, openSettings } from "../../cli/shell/options.ts";
import { watchTerminals } from "../../cli/shell/terminals.ts";
import { messageOf, systemCode } from "../../core/errors.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { isSource, pathInPackage } from "../../host/package.ts";
import { Actor } from "./act.ts";
import { startInBackground } from "./background.ts";
import { Pages } from "./find-page.ts";
import { LinkPage } from "./link-page.ts";
import { listenOn } from "./listen-on.ts";
import { Live } from "./live.ts";
import type { MetricsPage } from "./metrics-page.ts";
import { openBrowser } from "./open-browser.ts";
import { type WebOptions, WebServer } from "./server.ts";
import { Servers } from "./servers.ts";
import { Sessions } from "./sessions.ts";
import { VerbReader } from "./verb-reader.ts";

/** The default port. It is fixed, so that a bookmark works. */
const PORT = 7433;

export const command = defineCommand({
  usage:
    "[--port N] [--open] [--detach] [--link] [--stop] [--read-only] [--metrics-token-file FILE] [--host ADDR --origin URL …]",
  isLongLived: true,
  otherWays: {
    link: "mailchute web --link prints a new link to a server that runs already",
    stop: "mailchute web --stop ends it",
  },
  details: [
    "Shows the pool, its tasks and their logs in a browser on this machine, with buttons for what their commands do: retry, cancel, pause, answer, land and others. It prints a link, which works once and for a minute; Enter prints a new one, and `mailchute web --link` does so from another terminal. A browser that used it stays signed in until this command ends.",
    "With --metrics-token-file, /metrics has the numbers of `mailchute metrics` for Prometheus, which sends the token of that file. The file is read at the start.",
    "It listens on 127.0.0.1. Another address needs --origin, the address that people open, and TLS: of its own (--tls-cert, --tls-key), or of a proxy in front of it that passes the Host header on (--behind-proxy). Each request for data needs a cookie and a key that only pages of this server have.",
  ],
  examples: [
    "web --open",
    "web --port 0 --read-only",
    "web --behind-proxy --origin https://pool.example",
    "web --host 0.0.0.0 --origin https://pool.example:7433 --tls-cert cert.pem --tls-key key.pem",
  ],
  options: {
    port: {
      type: "number",
      value: "N",
      min: 0,
      max: 65_535,
      help: `default ${PORT}; 0: any free one`,
    },
    open: { type: "flag", help: "open the link in your browser (xdg-open, open)" },
    link: {
      type: "flag",
      help: "print a new link to a server that runs already, also in the background, and end",
    },
    detach: { type: "flag", help: "start it in the background, as a closed terminal ends it" },
    stop: { type: "flag", help: "end the server of this tree that runs, also in the background" },
    host: textOption("ADDR", "the address to listen on (default: 127.0.0.1)"),
    origin: textOption("URL", "https://NAME[:PORT], as people open it"),
    "tls-cert": textOption("FILE", "the certificate, as PEM"),
    "tls-key": textOption("FILE", "its key, as PEM"),
    "behind-proxy": { type: "flag", help: "a proxy with TLS stands in front of it" },
    "metrics-token-file": textOption("FILE", "serve /metrics to clients that send this token"),
    "read-only": { type: "flag", help: "no buttons: nothing can be changed" },
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const servers = new Servers(tree.dir);
    if (ctx.options.link) return printLink(ctx as Context, servers);
    if (ctx.options.stop) return stopServer(ctx as Context, servers);
    if (ctx.options.detach)
      return startInBackground(ctx as Context, tree.dir, servers, process.argv.slice(2));
    const on = listenOn(ctx.options);
    const settings = await openSettings(ctx).then(
      (loaded) => loaded.settings,
      () => DEFAULT_SETTINGS,
    );
    const isReadOnly = ctx.options["read-only"];
    const verbs = new VerbReader(ctx as Context);
    const plugins = settings.plugins.length === 0 ? [] : await usablePlugins(ctx);
    const pages = new Pages(tree, settings, { isReadOnly, verbs, plugins });
    const port = ctx.options.port ?? PORT;
    const assets = pathInPackage(`${isSource ? "src" : "dist"}/parts/web/assets`);
    const metrics = await openMetrics(ctx as Context, tree, settings);
    const actor = isReadOnly ? {} : { actor: new Actor(ctx as Context) };
    const links = settings.web.public_url === "" ? {} : { links: new LinkPage(tree, actor.actor) };
    const live = new Live(tree, pages);
    const sessions = new Sessions(undefined, (code) => servers.takes(code));
    const server = makeServer({
      port,
      listenOn: on,
      pages,
      live,
      sessions,
      assets,
      ...actor,
      ...links,
      ...metrics,
    });
    await server.listen().catch((error: unknown) => {
      throw cannotListen(error, on.host, port);
    });
    servers.announce(server.port, server.origin);
    const endIfHungUp = watchTerminals();
    const print = (link: string): void => {
      if (ctx.json) ctx.out.json({ link, port: server.port, pid: process.pid });
      else ctx.out.line(link);
    };
    const link = server.newLink();
    print(link);
    ctx.out.note("open this link within a minute; Enter prints a new one, Ctrl-C ends it");
    const forget = ctx.options.open ? openBrowser(link, (text) => ctx.out.note(text)) : undefined;
    if (process.stdin.isTTY) process.stdin.on("data", () => print(server.newLink()));
    const signal = await ended();
    process.stdin.pause();
    servers.retract();
    await server.close();
    pages.close();
    metrics.closeMetrics?.();
    forget?.();
    endIfHungUp();
    return signal === "SIGINT" ? EXIT.interrupted : EXIT.ok;
  },
});

/** @throws ErrUsage when no server runs on this tree, ErrInsideRun */
function printLink(ctx: Context, servers: Servers): number {
  const { options, out, json } = ctx;
  if (dropOf(ctx) !== undefined) throw insideRun("web --link", "ask a person for it");
  const link = servers.newLink(portOf(options));
  if (link === undefined) throw noServer(options);
  if (json) out.json({ link });
  else out.line(link);
  return EXIT.ok;
}

/** @throws ErrUsage when no server runs on this tree, ErrInsideRun */
function stopServer(ctx: Context, servers: Servers): number {
  const { options, out, json } = ctx;
  if (dropOf(ctx) !== undefined) throw insideRun("web --stop", "ask a person for it");
  const ports = servers.stop(portOf(options));
  if (ports.length === 0) throw noServer(options);
  if (json) out.json({ stopped: ports });
  else out.line(`stopped: port ${ports.join(", ")}`);
  return EXIT.ok;
}

function portOf({ port }: Context["options"]): { port?: number } {
  return typeof port === "number" ? { port } : {};
}

function noServer(options: Context["options"]): ErrUsage {
  const { port } = portOf(options);
  const where = port === undefined ? "" : ` on port ${port}`;
  return new ErrUsage(`no mailchute web runs on this tree${where}`, "start one: mailchute web");
}

/** One look reads at most this much of a journal that no supervisor has counted (bytes). That takes a tenth of a second. */
const METRICS_BYTES_MAX = 8 * 1024 * 1024;

/** Loads `/metrics` only if the options ask for it. @throws ErrUsage for a token file that cannot be used */
async function openMetrics(
  ctx: Context,
  tree: StateTree,
  settings: Settings,
): Promise<{ metrics?: MetricsPage; closeMetrics?: () => void }> {
  const file = ctx.options["metrics-token-file"];
  if (typeof file !== "string") return {};
  const { MetricsPage, readToken } = await import("./metrics-page.ts");
  const { MetricsReader } = await import("../../view/metrics/metrics-reader.ts");
  const token = readToken(resolve(ctx.cwd, file));
  const reader = new MetricsReader(tree, { settings, env: ctx.env, bytesMax: METRICS_BYTES_MAX });
  const make = (): string => {
    // Without this check its totals would fall to 0.
    if (!existsTree(tree)) throw new Error(`${tree.dir} is gone`);
    return reader.next(Date.now());
  };
  return { metrics: new MetricsPage({ token, make }), closeMetrics: () => reader.close() };
}

function ended(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
      process.once(signal, () => resolve(signal));
  });
}

/** @throws ErrUsage for an invalid certificate or key */
function makeServer(options: WebOptions): WebServer {
  try {
    return new WebServer(options);
  } catch (error) {
    if (options.listenOn.tls === undefined) throw error;
    throw new ErrUsage(
      `the certificate and its key cannot be used: ${messageOf(error)}`,
      "--tls-cert and --tls-key want a pair in PEM form",
    );
  }
}

function cannotListen(error: unknown, host: string, port: number): ErrUsage {
  const isTaken = systemCode(error) === "EADDRINUSE";
  const why = isTaken ? "another program uses it" : messageOf(error);
  const isAddress = systemCode(error) === "EADDRNOTAVAIL" || systemCode(error) === "ENOTFOUND";
  return new ErrUsage(
    `cannot listen on port ${port} of ${host}: ${why}`,
    isAddress
      ? "name an address of this machine with --host"
      : "name another one with --port; 0 takes any free one. If it is `mailchute web`, mailchute web --link prints a new link",
  );
}
