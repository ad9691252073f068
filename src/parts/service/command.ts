/** `service`: lets systemd start the pool with the machine, watch it and restart it. */
import fs from "node:fs";
import { join } from "node:path";
import { type Context, defineCommand, ErrUsage, textOption } from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { existingTree, openSettings, shortPath } from "../../cli/shell/options.ts";
import { ErrIo, ErrSupervisorRunning, MailchuteError } from "../../core/errors.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { pathInPackage } from "../../host/package.ts";
import { NAMED, readRegularText, statOf } from "../../host/regular-file.ts";
import { replaceText } from "../../host/replace-document.ts";
import { safe } from "../../text/render.ts";
import { isAttended, readSupervisor } from "../../view/supervisor.ts";
import { Systemd } from "./systemd.ts";
import { makeUnit, programsOfUnit, treeOfUnit } from "./unit.ts";

const NAME = /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$/;
const LINGER_DIR = "/var/lib/systemd/linger";

const OPTIONS = {
  system: { type: "flag", help: "a unit of the system (default for root)" },
  user: { type: "flag", help: "a unit of this user (default for all others)" },
  name: textOption("NAME", "the unit is NAME.service (default mailchute); one for each state tree"),
  "run-as": textOption("USER", "with --system: who runs it (default: the owner of the state tree)"),
  "no-start": { type: "flag", help: "with install: start it with the machine, but not now" },
} as const;

type ServiceContext = Context<typeof OPTIONS>;

export const command = defineCommand({
  usage: "install | print | status | remove [-- RUN OPTIONS…]",
  subcommands: {
    install: "write the unit, or replace it, and start it: now and with the machine",
    print: "print the unit, and change nothing",
    status: "whether it is installed, starts with the machine and runs",
    remove: "stop it and remove the unit; the state tree stays as it is",
  },
  takesRest: true,
  details: [
    "systemd starts the pool, starts it again when it fails, and kills and restarts it when it has not worked for a minute. What runs is given back at a stop and runs again at the next start.",
    "What follows -- goes to `mailchute run`. Variables for agents, such as keys, belong into service.env in the state tree. Changes of the unit belong into a drop-in: `systemctl edit`.",
    "Without systemd: `mailchute run --detach`, or any supervisor of processes with `mailchute run`, which stays in the foreground and ends at SIGTERM.",
  ],
  examples: [
    "service install",
    "service install --name shop -- --workers 4",
    "service print --system",
  ],
  options: OPTIONS,
  async run(ctx) {
    const systemd = new Systemd(isSystem(ctx), ctx.env);
    const name = ctx.options.name ?? "mailchute";
    if (!NAME.test(name))
      throw new ErrUsage(`--name ${JSON.stringify(name)}: letters, digits, - and _, at most 64`);
    const unit = `${name}.service`;
    const path = join(systemd.unitDir, unit);
    if (ctx.rest !== undefined && ctx.subcommand !== "install" && ctx.subcommand !== "print")
      throw new ErrUsage("options of run belong to service install and service print");
    if (ctx.subcommand === "print") await ctx.out.raw(await unitText(ctx));
    else if (ctx.subcommand === "install") await install(ctx, systemd, unit, path);
    else if (ctx.subcommand === "status") return showStatus(ctx, systemd, unit, path);
    else remove(ctx, systemd, unit, path);
    return EXIT.ok;
  },
});

function isSystem({ options }: ServiceContext): boolean {
  if (options.system && options.user) throw new ErrUsage("either --system or --user");
  const isRoot = process.getuid?.() === 0;
  const isChosen = options.system || (isRoot && !options.user);
  if (options["run-as"] !== undefined && !isChosen) throw new ErrUsage("--run-as needs --system");
  return isChosen;
}

async function unitText(ctx: ServiceContext): Promise<string> {
  const tree = existingTree(ctx);
  const { settings } = await openSettings(ctx);
  const isOfSystem = isSystem(ctx);
  const owner = String(statOf(tree.dir)?.uid);
  return makeUnit({
    argv: [
      process.execPath,
      fs.realpathSync(pathInPackage("bin/mailchute.js")),
      "run",
      "--state",
      tree.dir,
      ...(ctx.rest ?? []),
    ],
    stateDir: tree.dir,
    path: ctx.env["PATH"] ?? "",
    isSystem: isOfSystem,
    user: isOfSystem ? (ctx.options["run-as"] ?? owner) : undefined,
    stopMs: settings.grace_ms * 2,
  });
}

async function install(
  ctx: ServiceContext,
  systemd: Systemd,
  unit: string,
  path: string,
): Promise<void> {
  const tree = existingTree(ctx);
  const text = await unitText(ctx);
  const old = readUnit(path);
  const other = old === undefined ? undefined : treeOfUnit(old);
  if (old !== undefined && other !== tree.dir)
    throw new MailchuteError(
      "ErrTaskExists",
      other === undefined
        ? `${unit} is there, and was not made by mailchute`
        : `${unit} runs another state tree: ${other}`,
      { path, phase: "service", hint: "give this one a name of its own: --name NAME" },
    );
  const reason = systemd.whyNot();
  if (reason !== undefined)
    throw new ErrIo(`no systemd can be asked here: ${reason}`, {
      phase: "service",
      hint: "`mailchute service print` prints the unit; without systemd use `mailchute run --detach`",
    });
  const isOurs = systemd.properties(unit, ["ActiveState"])["ActiveState"] === "active";
  const { document, ...view } = readSupervisor(tree, Date.now());
  if (!isOurs && isAttended({ ...view, document }))
    throw new ErrSupervisorRunning(
      `a supervisor (pid ${document?.pid}) runs on this state tree already`,
      { path: tree.dir, phase: "service", hint: "mailchute stop; then install again" },
    );
  makeDirs(systemd.unitDir, Number.POSITIVE_INFINITY);
  replaceText(path, text, { stagingDir: systemd.unitDir, isDurable: true });
  fs.chmodSync(path, 0o644);
  must(systemd, "daemon-reload");
  must(systemd, "enable", unit);
  // A unit that runs already restarts with the new text.
  if (!ctx.options["no-start"]) must(systemd, "restart", unit);
  if (ctx.json) return ctx.out.json({ unit, path, state: tree.dir });
  ctx.out.line(
    `${unit} ${ctx.options["no-start"] ? "starts" : "runs, and starts"} with the machine`,
  );
  ctx.out.line(`  unit    ${safe(path)}`);
  ctx.out.line(`  log     ${journalLine(systemd, unit)}`);
  ctx.out.line(`  status  mailchute service status${sameUnit(ctx)}`);
  noteLinger(ctx, systemd);
  if (/[/\\]_npx[/\\]/.test(text))
    ctx.out.note(
      "this program lies in the cache of npx, which npm may clear: npm install --global ./mailchute-VERSION.tgz, as docs/install.md says",
    );
}

/** A unit of a user starts with the machine only when the user lingers. */
function noteLinger(ctx: ServiceContext, systemd: Systemd): void {
  const user = ctx.env["USER"] ?? ctx.env["LOGNAME"];
  if (systemd.isSystem || user === undefined || fs.existsSync(join(LINGER_DIR, user))) return;
  ctx.out.note(
    `it starts when ${safe(user)} logs in, and ends with the last session; for a start with the machine: loginctl enable-linger ${safe(user)}`,
  );
}

function showStatus(ctx: ServiceContext, systemd: Systemd, unit: string, path: string): number {
  const text = readUnit(path);
  if (text === undefined) {
    if (ctx.json) ctx.out.json({ unit, path, installed: false });
    else ctx.out.line(`${unit} is not installed; mailchute service install`);
    return EXIT.notFound;
  }
  const reason = systemd.whyNot();
  const names = ["ActiveState", "SubState", "UnitFileState", "MainPID", "NRestarts"];
  const found = reason === undefined ? systemd.properties(unit, names) : {};
  const tree = treeOfUnit(text) ?? null;
  const gone = programsOfUnit(text).filter((program) => !fs.existsSync(program));
  const isActive = found["ActiveState"] === "active";
  if (ctx.json) {
    ctx.out.json({
      unit,
      path,
      installed: true,
      state: tree,
      active: found["ActiveState"] ?? null,
      sub_state: found["SubState"] ?? null,
      enabled: found["UnitFileState"] ?? null,
      pid: Number(found["MainPID"] ?? 0) || null,
      restarts: Number(found["NRestarts"] ?? 0),
      missing_programs: gone,
      systemd_problem: reason ?? null,
    });
    return isActive ? EXIT.ok : EXIT.failed;
  }
  ctx.out.line(
    reason === undefined
      ? `${unit} is ${found["ActiveState"]} (${found["SubState"]}), ${found["UnitFileState"]}, pid ${found["MainPID"]}, started again ${found["NRestarts"]} times`
      : `${unit} is installed; no systemd can be asked here: ${safe(reason)}`,
  );
  ctx.out.line(`  tree    ${safe(tree ?? "unknown: this unit was not made by mailchute")}`);
  ctx.out.line(`  unit    ${safe(path)}`);
  ctx.out.line(`  log     ${journalLine(systemd, unit)}`);
  for (const program of gone)
    ctx.out.line(`  ${safe(program)} is gone: mailchute service install${sameUnit(ctx)}`);
  return isActive ? EXIT.ok : EXIT.failed;
}

function remove(ctx: ServiceContext, systemd: Systemd, unit: string, path: string): void {
  const text = readUnit(path);
  if (text === undefined)
    throw new MailchuteError("ErrTaskNotFound", `${unit} is not installed`, {
      path,
      phase: "service",
      hint: "perhaps it has another name: --name NAME; or belongs to the system: --system",
    });
  if (treeOfUnit(text) === undefined)
    throw new MailchuteError("ErrInvalidTransition", `${unit} was not made by mailchute`, {
      path,
      phase: "service",
      hint: "remove it by hand if it is yours",
    });
  const reason = systemd.whyNot();
  if (reason === undefined) must(systemd, "disable", "--now", unit);
  fs.rmSync(path);
  if (reason === undefined) must(systemd, "daemon-reload");
  else ctx.out.note(`systemd cannot be asked here, so only the file was removed: ${safe(reason)}`);
  if (ctx.json) ctx.out.json({ unit, path, removed: true });
  else ctx.out.line(`${unit} is stopped and removed (${shortPath(ctx, path)})`);
}

/** @throws ErrIo with what systemctl said */
function must(systemd: Systemd, ...words: string[]): void {
  const { ok, trouble } = systemd.ask(...words);
  if (ok) return;
  throw new ErrIo(`${systemd.commandLine(...words)}: ${trouble}`, {
    phase: "service",
    hint: "mailchute service status says how far it is",
  });
}

function readUnit(path: string): string | undefined {
  return fs.existsSync(path) ? readRegularText(path, NAMED) : undefined;
}

function journalLine({ isSystem: isOfSystem }: Systemd, unit: string): string {
  return `journalctl ${isOfSystem ? "" : "--user "}-u ${unit} -f`;
}

/** The options with which another call means the same unit. */
function sameUnit({ options }: ServiceContext): string {
  const scope = options.user ? " --user" : options.system ? " --system" : "";
  return options.name === undefined ? scope : `${scope} --name ${options.name}`;
}
