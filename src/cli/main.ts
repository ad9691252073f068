/** The entry of the command line: finds the verb, reads its options, runs it, reports errors. It knows no verb by name. */
import { isAbsolute } from "node:path";
import { suggest } from "../core/suggest.ts";
import { readVersion } from "../host/package.ts";
import { type CommandSpec, type Context, ErrUsage, type Output } from "./shell/command-spec.ts";
import { reportError } from "./shell/error-text.ts";
import { EXIT } from "./shell/exit-codes.ts";
import { DEFAULT_COLUMNS, SHARED_OPTIONS } from "./shell/options.ts";
import { makeOutput, Stdout, writeStderr } from "./shell/output.ts";
import { parseArguments } from "./shell/parse.ts";
import { loadCommand, REGISTRY } from "./shell/registry.ts";
import { findStateDir, mayHavePlugins, type StatePlace } from "./shell/state-dir.ts";

/**
 * Runs one command line.
 * @param argv without node and the script
 * @returns the exit code; never throws
 */
export async function main(argv: string[]): Promise<number> {
  const env = process.env;
  const end = argv.indexOf("--");
  const json = (end === -1 ? argv : argv.slice(0, end)).includes("--json");
  const place: Place = {};
  try {
    return await dispatch(argv, env, place);
  } catch (error) {
    return reportError(error, json, env, (text) => writeStderr(text), place.state);
  }
}

interface Place {
  /** The state tree, as soon as it is known. */
  state?: StatePlace;
}

async function dispatch(argv: string[], env: NodeJS.ProcessEnv, place: Place): Promise<number> {
  const stdout = new Stdout();
  const out = makeOutput(stdout);
  const { verb, args } = await splitVerb(argv);
  if (verb === undefined) {
    if (args.includes("--version") || args.includes("-v") || args.includes("-V")) {
      out.line(readVersion());
      return EXIT.ok;
    }
    return await withoutVerb(args, env, out);
  }
  if (!Object.hasOwn(REGISTRY, verb)) {
    const { runForeign } = await import("./shell/foreign-verbs.ts");
    const words = argv.slice(argv.indexOf(verb) + 1);
    const code = await runForeign(verb, { args, words, env, cwd: currentDir(env), out });
    if (code !== undefined) return code;
  }
  const spec = await loadCommand(verb);
  const end = args.indexOf("--");
  const own = end === -1 ? args : args.slice(0, end);
  if (own.includes("--help") || own.includes("-h")) {
    const { commandHelp } = await import("./shell/help.ts");
    out.line(commandHelp(verb, spec));
    return EXIT.ok;
  }
  // Before the options: of an unknown second word these are unknown, too, and would hide what is wrong.
  if (own[0]?.startsWith("-") === false) checkSecondWord(verb, spec, own[0]);
  const parsed = parseArguments(verb, args, { ...spec.options, ...SHARED_OPTIONS });
  const subcommand = takeSubcommand(verb, spec, parsed.positionals);
  checkPositionals(verb, subcommand, spec, parsed.positionals, parsed.rest);
  const { isTerminal } = stdout;
  const noColour =
    parsed.values["no-color"] === true || (env["NO_COLOR"] ?? "") !== "" || env["TERM"] === "dumb";
  const cwd = currentDir(env);
  const state = findStateDir(parsed.values["state"] as string | undefined, env, cwd);
  place.state = state;
  const ctx: Context = {
    stateDir: state.dir,
    stateFrom: state.from,
    json: parsed.values["json"] === true,
    colour: isTerminal && !noColour,
    isTerminal,
    columns: stdout.columns || Number(env["COLUMNS"]) || DEFAULT_COLUMNS,
    cwd,
    env,
    options: parsed.values as Context["options"],
    positionals: parsed.positionals,
    subcommand,
    rest: parsed.rest,
    out,
  };
  const { insteadInRun } = REGISTRY[verb] ?? {};
  if (insteadInRun !== undefined && env["MAILCHUTE_DROP"] !== undefined) {
    const { dropOf, insideRun } = await import("./shell/inside-run.ts");
    if (dropOf(ctx) !== undefined) throw insideRun(verb, insteadInRun);
  }
  if (REGISTRY[verb]?.group !== "Start" && mayHavePlugins(state.dir, env))
    await (await import("./shell/foreign-verbs.ts")).usablePlugins(ctx);
  if (spec.isLongLived === true) stdout.outliveErrors();
  if (spec.endsWithReader === true) stdout.endWithReader();
  if (spec.isLongLived === true && isInit()) {
    const { runBelowInit } = await import("../host/init.ts");
    const code = await runBelowInit();
    if (code !== undefined) return code;
    out.note(
      "pid 1 of a container must wait for processes that others have left, and Node does not: they stay as zombies. Start it with --init (docker), or install tini or perl",
    );
  }
  return spec.run(ctx);
}

/** Shows all verbs. */
async function withoutVerb(args: string[], env: NodeJS.ProcessEnv, out: Output): Promise<number> {
  // Check the options even without a verb: a typing error must not go unnoticed.
  const { values } = parseArguments("mailchute", args, SHARED_OPTIONS);
  const { overview } = await import("./shell/help.ts");
  const { dir } = findStateDir(values["state"] as string | undefined, env, currentDir(env));
  const { addForeignVerbs } = await import("./shell/foreign-verbs.ts");
  const text = overview(
    readVersion(),
    await addForeignVerbs({ stateDir: dir, env, out, cwd: currentDir(env) }),
  );
  if (values["help"] === true) {
    out.line(text);
    return EXIT.ok;
  }
  writeStderr(`${text}\n`);
  return EXIT.usage;
}

/** The current directory. If it was deleted, its old name: then commands that do not need it work, and others report it missing. */
function currentDir(env: NodeJS.ProcessEnv): string {
  try {
    return process.cwd();
  } catch (error) {
    const name = env["PWD"];
    if (name !== undefined && isAbsolute(name)) return name;
    throw error;
  }
}

/**
 * Finds the verb among the words. cac finds it behind shared options. cac does not read values, because it turns `--id 0012` into
 * 12, accepts unknown commands and knows no second words: `parse.ts` reads the raw arguments.
 */
async function splitVerb(argv: string[]): Promise<{ verb: string | undefined; args: string[] }> {
  const [word, ...others] = argv;
  // The verb nearly always comes first. The code below handles shared options before the verb, and takes milliseconds.
  if (word !== undefined && Object.hasOwn(REGISTRY, word)) return { verb: word, args: others };
  const { cac } = await import("cac");
  const end = argv.indexOf("--");
  const words = end === -1 ? argv : argv.slice(0, end);
  const cli = cac("mailchute");
  cli
    .option("-s, --state <dir>", "")
    .option("--json", "")
    .option("--no-color", "")
    .option("-h, --help", "");
  for (const name of Object.keys(REGISTRY)) cli.command(`${name} [...words]`, "");
  cli.parse(
    ["node", "mailchute", ...words.map((word) => (/^[\d.+]/.test(word) ? `_${word}` : word))],
    { run: false },
  );
  const matched = cli.matchedCommandName;
  const first = matched ?? cli.args[0];
  if (first === undefined) return { verb: undefined, args: argv };
  // Take the first word that equals the verb and is not the value of a --state before it.
  const isValue = (i: number): boolean => ["--state", "-s"].includes(words[i - 1] ?? "");
  const at = words.findIndex((word, i) => word === String(first) && !isValue(i));
  const rest = [...argv.slice(0, at), ...argv.slice(at + 1)];
  return at === -1
    ? { verb: String(first).replace(/^_/, ""), args: argv }
    : { verb: String(first), args: rest };
}

/** Second words that other tools use for the first one of each line. */
const SAME_WORDS: readonly (readonly string[])[] = [
  ["ls", "list"],
  ["add", "create", "new"],
  ["remove", "rm", "delete"],
];

function takeSubcommand(verb: string, spec: CommandSpec, positionals: string[]): string {
  if (spec.subcommands === undefined) return "";
  const word = positionals.shift();
  if (word !== undefined) {
    checkSecondWord(verb, spec, word);
    return word;
  }
  if (Object.hasOwn(spec.subcommands, "ls") && spec.args?.min === 0) return "ls";
  throw new ErrUsage(
    `${verb} needs a second word: ${Object.keys(spec.subcommands).join(", ")}`,
    `see \`mailchute ${verb} --help\``,
  );
}

function checkSecondWord(verb: string, spec: CommandSpec, word: string): void {
  if (spec.subcommands === undefined || Object.hasOwn(spec.subcommands, word)) return;
  const names = Object.keys(spec.subcommands);
  const meant = SAME_WORDS.find((words) => words.includes(word))?.[0] ?? word;
  const near = names.includes(meant) ? meant : suggest(word, names);
  throw new ErrUsage(
    `there is no command ${JSON.stringify(`${verb} ${word}`)}`,
    spec.otherWays?.[meant] ??
      (near === undefined
        ? `it is one of: ${names.join(", ")}`
        : `did you mean "mailchute ${verb} ${near}"?`),
  );
}

function checkPositionals(
  verb: string,
  subcommand: string,
  spec: CommandSpec,
  positionals: readonly string[],
  rest: readonly string[] | undefined,
): void {
  const name = subcommand === "" ? verb : `${verb} ${subcommand}`;
  const { min, max } = spec.args ?? { min: 0, max: 0 };
  const usage = `usage: mailchute ${verb} ${spec.usage}`;
  if (rest !== undefined && spec.takesRest !== true)
    throw new ErrUsage(`${name} takes nothing after --`, usage);
  if (positionals.length < min) throw new ErrUsage(`${name} needs more words`, usage);
  if (positionals.length <= max) return;
  const extra = positionals
    .slice(max)
    .map((word) => JSON.stringify(word))
    .join(" ");
  throw new ErrUsage(
    `${name} does not know what to do with ${extra}`,
    spec.takesRest === true
      ? `put a program and its arguments after --: mailchute ${verb} -- ${positionals.join(" ")}`
      : (spec.otherWays?.[positionals[max] ?? ""] ?? usage),
  );
}

/** Whether this process must wait for orphans: it is the first of its pid namespace. */
function isInit(): boolean {
  return process.platform === "linux" && process.pid === 1;
}
