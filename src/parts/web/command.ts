/** `web`: pages of the pool for a browser on this machine. What they change goes through the verbs of the command line. */
import { type Context, defineCommand, ErrUsage } from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { existingTree, openSettings } from "../../cli/shell/options.ts";
import { watchTerminals } from "../../cli/shell/terminals.ts";
import { messageOf, systemCode } from "../../core/errors.ts";
import { DEFAULT_SETTINGS } from "../../core/settings.ts";
import { isSource, pathInPackage } from "../../host/package.ts";
import { Actor } from "./act.ts";
import { Pages } from "./find-page.ts";
import { Live } from "./live.ts";
import { WebServer } from "./server.ts";
import { Sessions } from "./sessions.ts";

/** Fixed, so that a bookmark works. */
const PORT = 7433;

export const command = defineCommand({
  usage: "[--port N] [--read-only]",
  isLongLived: true,
  details: [
    "Shows the pool, its tasks and their logs in a browser on this machine, with buttons for what their commands do: retry, cancel, pause, answer, land and others. It prints a link, which works once and for a minute; Enter prints a new one. What was opened by it stays open until this command ends.",
    "It listens on 127.0.0.1 only. Each request for data needs a cookie and a key that only pages of this server have.",
  ],
  examples: ["web", "web --port 0", "web --read-only"],
  options: {
    port: {
      type: "number",
      value: "N",
      min: 0,
      max: 65_535,
      help: `default ${PORT}; 0: any free one`,
    },
    "read-only": { type: "flag", help: "no buttons: nothing can be changed" },
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const settings = await openSettings(ctx).then(
      (loaded) => loaded.settings,
      () => DEFAULT_SETTINGS,
    );
    const isReadOnly = ctx.options["read-only"];
    const pages = new Pages(tree, settings, { isReadOnly });
    const port = ctx.options.port ?? PORT;
    const assets = pathInPackage(`${isSource ? "src" : "dist"}/parts/web/assets`);
    const actor = isReadOnly ? {} : { actor: new Actor(ctx as Context) };
    const live = new Live(tree, pages);
    const sessions = new Sessions();
    const server = new WebServer({ port, pages, live, sessions, assets, ...actor });
    await server.listen().catch((error: unknown) => {
      throw cannotListen(error, port);
    });
    const endIfHungUp = watchTerminals();
    const print = (): void => {
      const link = server.newLink();
      if (ctx.json) ctx.out.json({ link, port: server.port, pid: process.pid });
      else ctx.out.line(link);
    };
    print();
    ctx.out.note("open this link within a minute; Enter prints a new one, Ctrl-C ends it");
    if (process.stdin.isTTY) process.stdin.on("data", print);
    const signal = await ended();
    process.stdin.pause();
    await server.close();
    pages.close();
    endIfHungUp();
    return signal === "SIGINT" ? EXIT.interrupted : EXIT.ok;
  },
});

function ended(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
      process.once(signal, () => resolve(signal));
  });
}

function cannotListen(error: unknown, port: number): ErrUsage {
  const why = systemCode(error) === "EADDRINUSE" ? "another program uses it" : messageOf(error);
  return new ErrUsage(
    `cannot listen on port ${port} of 127.0.0.1: ${why}`,
    "name another one with --port; 0 takes any free one",
  );
}
