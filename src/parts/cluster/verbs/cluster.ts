/** `cluster`: shows the machines that work together, drains a machine, and makes the streams at the servers. */
import { type Context, defineCommand, ErrUsage } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { existingTree, openSettings } from "../../../cli/shell/options.ts";
import { ErrIo, messageOf } from "../../../core/errors.ts";
import { stateTree } from "../../../core/state-tree.ts";
import { ago, counted, countText, safe, table } from "../../../text/render.ts";
import { isTarget } from "../protocol/dispatch.ts";
import { type BridgeDocument, type MachineEntry, readBridge } from "../tree/bridge-document.ts";
import { isDraining, setDraining } from "../tree/drain-file.ts";
import { treeName } from "../tree/tree-name.ts";
import { connectTo, nameOf, placeOf } from "./place.ts";

export const command = defineCommand({
  usage: "ls | status | drain [MACHINE] | resume [MACHINE] | init [--out DIR]",
  subcommands: {
    ls: "list the machines: what they serve, their slots, their load, when they were heard",
    status: "show what the bridge of this tree does, and how many tasks are on their way",
    drain: "a machine takes no more tasks of others; what it has ends. Default: this machine",
    resume: "it takes tasks again",
    init: "make the streams at the servers, and keys and rights for the machines that are listed in config.yaml",
  },
  args: { min: 0, max: 1 },
  details: [
    "Machines are known to the bridge of this tree (`mailchute bridge`). See docs/cluster.md.",
  ],
  examples: ["cluster ls", "cluster drain box1", "cluster init"],
  options: {
    out: {
      type: "text",
      value: "DIR",
      help: "init: write keys and server configuration there; default: cluster/keys in the state tree",
    },
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const [name] = ctx.positionals;
    const { out } = ctx.options;
    if (ctx.subcommand === "init") {
      if (name !== undefined) throw new ErrUsage("cluster init takes no name");
      const { init } = await import("./init.ts");
      return init(ctx, out);
    }
    if (out !== undefined) throw new ErrUsage("--out belongs to cluster init");
    const isLook = ctx.subcommand === "ls" || ctx.subcommand === "status";
    if (isLook && name !== undefined) throw new ErrUsage(`cluster ${ctx.subcommand} takes no name`);
    if (!isLook) return drain(ctx, name, ctx.subcommand === "drain");
    const bridge = readBridge(tree.dir, Date.now());
    return ctx.subcommand === "ls" ? list(ctx, bridge) : status(ctx, tree.dir, bridge);
  },
});

/** At most this many trees that do not answer are named. */
const TREES_SHOWN = 5;
const NO_BRIDGE = "no bridge runs on this state tree: mailchute bridge starts one";

function list(ctx: Context, bridge: BridgeDocument | undefined): number {
  if (bridge === undefined) {
    if (ctx.json) ctx.out.json({ machines: [], bridge: null });
    ctx.out.note(NO_BRIDGE);
    return EXIT.failed;
  }
  if (ctx.json) ctx.out.json({ machines: bridge.machines, bridge: bridge.machine });
  else if (bridge.machines.length === 0) ctx.out.note("no machine was heard yet");
  else {
    const columns = [
      { title: "MACHINE", min: 8 },
      { title: "STATE" },
      { title: "SERVES", min: 8 },
      { title: "SLOTS", align: "right" as const },
      { title: "BUSY", align: "right" as const },
      { title: "OURS", align: "right" as const },
      { title: "LOAD", align: "right" as const },
      { title: "HEARD" },
      { title: "VERSION" },
    ];
    const nowMs = Date.now();
    const cells = bridge.machines.map((one) => [
      safe(`${one.name}${one.name === bridge.machine ? " (here)" : ""}`),
      stateOf(one),
      safe(one.serves.join(", ")),
      countText(one.room),
      countText(one.open),
      countText(one.ours),
      `${one.load.toFixed(1)}/${countText(one.cpus)}`,
      ago(Date.parse(one.heard_at), nowMs),
      safe(one.version),
    ]);
    for (const line of table(columns, cells, ctx.columns, ctx.colour)) ctx.out.line(line);
    for (const note of bridge.machines.flatMap(notesAbout)) ctx.out.line(safe(note));
  }
  return EXIT.ok;
}

/** What people should know about a machine, beside its row. */
function notesAbout({ name, is_there: isThere, room, why, twins }: MachineEntry): string[] {
  const notes =
    isThere && room === 0 && why !== undefined ? [`${name} takes no tasks: ${why}`] : [];
  if (twins === undefined) return notes;
  const all = `${counted(twins.length + 1, "machine")} with the name ${name}`;
  return [...notes, `there are ${all}: give each a name of its own (cluster: name:)`];
}

function stateOf({
  is_there: isThere,
  is_draining: isOff,
  serves,
  open,
  room,
}: MachineEntry): string {
  if (!isThere) return "silent";
  if (isOff) return open > 0 ? "draining" : "drained";
  if (serves.length === 0) return "sends only";
  return room > 0 ? "takes tasks" : "no slots";
}

function status(ctx: Context, stateDir: string, bridge: BridgeDocument | undefined): number {
  const isOff = isDraining(stateDir);
  if (ctx.json) {
    ctx.out.json({ bridge: bridge ?? null, is_draining: isOff });
    return bridge === undefined ? EXIT.failed : EXIT.ok;
  }
  const line = (key: string, value: string): void =>
    ctx.out.line(`${key.padEnd(10)}${safe(value)}`);
  if (bridge === undefined) line("bridge", "none runs here; start it: mailchute bridge");
  else {
    const { pid, machine, tree, servers, version } = bridge;
    line("bridge", `running, pid ${pid}, machine ${machine}, tree ${tree}, version ${version}`);
    line("servers", `${servers.join(", ")}${bridge.is_connected ? "" : " (not reached)"}`);
  }
  if (bridge?.trouble !== undefined) line("trouble", bridge.trouble);
  const unanswered = Object.entries(bridge?.unanswered ?? {});
  for (const [tree, count] of unanswered.slice(0, TREES_SHOWN))
    line("unheard", `${counted(count, "result")} for ${tree}, which does not answer`);
  if (unanswered.length > TREES_SHOWN)
    line("unheard", `and results for ${counted(unanswered.length - TREES_SHOWN, "more tree")}`);
  if (isOff) line("drained", "this machine takes no tasks of others: mailchute cluster resume");
  const targets = Object.entries(bridge?.targets ?? {});
  if (targets.length === 0) return bridge === undefined ? EXIT.failed : EXIT.ok;
  const columns = [
    { title: "TARGET", min: 8 },
    { title: "SLOTS", align: "right" as const },
    { title: "SENT", align: "right" as const },
    { title: "BEGUN", align: "right" as const },
  ];
  const cells = targets.map(([name, { room, sent, begun }]) => [
    safe(name),
    ...[room, sent, begun].map((count) => countText(count)),
  ]);
  ctx.out.line();
  for (const row of table(columns, cells, ctx.columns, ctx.colour)) ctx.out.line(row);
  return EXIT.ok;
}

async function drain(ctx: Context, machine: string | undefined, isOn: boolean): Promise<number> {
  const { settings } = await openSettings(ctx);
  const own = nameOf(settings.cluster, stateTree(ctx.stateDir).config);
  if (machine !== undefined && !isTarget(machine))
    throw new ErrUsage(`${JSON.stringify(machine)} cannot be the name of a machine`);
  if (machine === undefined || machine === own) setDraining(ctx.stateDir, isOn);
  else await askMachine(ctx, machine, isOn);
  const is = isOn ? "takes no more tasks of others" : "takes tasks of others again";
  if (ctx.json) ctx.out.json({ machine: machine ?? own, is_draining: isOn });
  else ctx.out.line(`${safe(machine ?? own)} ${is}`);
  return EXIT.ok;
}

async function askMachine(ctx: Context, machine: string, isOn: boolean): Promise<void> {
  const place = await placeOf(ctx);
  const fail = (error: unknown): never => {
    throw new ErrIo(`${machine} does not answer: ${messageOf(error)}`, {
      path: place.settings.cluster.servers.join(", "),
      phase: "cluster",
      hint: "mailchute cluster ls shows whether it is there; at the machine itself, mailchute cluster drain needs no server",
    });
  };
  const tree = treeName(place.tree.dir, place.name);
  const broker = await connectTo(place, tree, () => {}).catch(fail);
  try {
    await broker.drain(machine, { is_draining: isOn }).catch(fail);
  } finally {
    await broker.close();
  }
}
