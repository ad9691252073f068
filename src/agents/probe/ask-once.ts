/** Asks a coding agent one question and reads its whole answer. It never hangs: the program has a time limit and a size limit. */
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { AgentSettings } from "../../core/settings.ts";
import { endGroup } from "../../host/process-tree.ts";
import { spawn } from "../../host/spawn.ts";
import type { AgentProgram, Dialogue } from "../stream/agent-program.ts";
import type { Fact } from "../stream/facts.ts";

export interface ProgramRun {
  argv: readonly string[];
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** Written to its standard input, which is closed after it; or an object that talks with it. */
  input: string | Talk;
  limitMs: number;
}

/** Our side of a conversation with a program. */
export interface Talk {
  begin(write: (text: string) => void): void;
  /** @returns true when we have nothing more to say: the caller then closes its standard input */
  hear(line: string): boolean;
}

export interface ProgramOutput {
  stdout: string;
  stderr: string;
  exitCode: number | null;
  /** Why it did not end by itself. */
  fault: string | undefined;
}

/** A program that prints more than this is stopped (bytes, about). */
const OUTPUT_MAX = 8 * 1024 * 1024;
/** The time from SIGTERM to SIGKILL (ms). */
const GRACE_MS = 1000;

/** Runs a program in a process group of its own, and ends the whole group. Never rejects. */
export async function runToItsEnd(run: ProgramRun): Promise<ProgramOutput> {
  const { argv, cwd, env, input, limitMs } = run;
  const output: ProgramOutput = { stdout: "", stderr: "", exitCode: null, fault: undefined };
  const child = spawn(argv[0] ?? "", argv.slice(1), { cwd, env, stdio: "pipe", detached: true });
  let killTimer: NodeJS.Timeout | undefined;
  const stop = (why: string): void => {
    if (output.fault !== undefined) return;
    output.fault = why;
    child.kill("SIGTERM");
    killTimer = setTimeout(() => void endAll(child.pid), GRACE_MS);
  };
  const timer = setTimeout(
    () => stop(`it did not end within ${Math.round(limitMs / 1000)} s`),
    limitMs,
  );
  for (const name of ["stdout", "stderr"] as const)
    child[name].setEncoding("utf8").on("data", (text: string) => {
      if (output[name].length > OUTPUT_MAX) stop("it printed without end");
      else output[name] += text;
    });
  // The program may end without reading its input. Then its exit code is the better message.
  child.stdin.on("error", () => {});
  if (typeof input === "string") child.stdin.end(input);
  else talk(child.stdin, child.stdout, input);
  await new Promise<void>((resolve) => {
    child.once("error", (error) => {
      output.fault ??= `it could not be started: ${error.message}`;
      resolve();
    });
    child.once("exit", (exitCode) => {
      output.exitCode = exitCode;
      // A process that it left behind may hold the pipes open.
      setTimeout(resolve, GRACE_MS);
    });
    child.once("close", () => resolve());
  });
  clearTimeout(timer);
  clearTimeout(killTimer);
  await endAll(child.pid);
  return output;
}

function talk(stdin: Writable, stdout: Readable, talker: Talk): void {
  const lines = createInterface({ input: stdout });
  lines.on("line", (line) => {
    if (line !== "" && talker.hear(line)) stdin.end();
  });
  talker.begin((text) => {
    if (stdin.writable) stdin.write(text);
  });
}

async function endAll(pid: number | undefined): Promise<void> {
  if (pid !== undefined) await endGroup(pid);
}

export interface Answer {
  facts: readonly Fact[];
  /** What is wrong with the answer, in one line. Undefined when its turn ended well. */
  fault: string | undefined;
  /** It did not end by itself. What it said last may be about the signal. */
  wasStopped: boolean;
}

export interface Question {
  program: AgentProgram;
  settings: AgentSettings;
  prompt: string;
  /** The session that is resumed. */
  sessionId?: string | undefined;
}

/** Never rejects: an error becomes the `fault` of the answer. */
export async function askOnce(
  { program, settings, prompt, sessionId }: Question,
  where: Pick<ProgramRun, "cwd" | "env" | "limitMs">,
): Promise<Answer> {
  const start = { settings, packet: prompt, sessionId, cwd: where.cwd };
  const input = program.input(start);
  const output = await runToItsEnd({
    ...where,
    argv: program.argv(start),
    input:
      input.kind === "dialogue"
        ? talkOf(input.dialogue, prompt)
        : input.kind === "text"
          ? input.text
          : "",
  });
  const read = program.newReader();
  const facts = output.stdout.split("\n").flatMap((line) => (line === "" ? [] : read(line)));
  return { facts, fault: faultOf(output, facts), wasStopped: output.fault !== undefined };
}

/** A conversation of one question. It ends with the turn that answers it. */
function talkOf(dialogue: Dialogue, packet: string): Talk {
  return {
    begin: (write) => dialogue.begin({ uuid: randomUUID(), packet, earlier: [] }, write),
    hear: (line) => dialogue.read(line).some(({ fact }) => fact === "turn_ended"),
  };
}

function faultOf(output: ProgramOutput, facts: readonly Fact[]): string | undefined {
  const end = facts.findLast((fact) => fact.fact === "turn_ended")?.end;
  const said = lastLine(output.stderr) ?? lastLine(output.stdout);
  const words = said ?? "it printed nothing";
  if (output.fault !== undefined)
    return said === undefined ? output.fault : `${output.fault}; its last line is: ${said}`;
  if (end === undefined)
    return `it ended without an answer (exit code ${output.exitCode}): ${words}`;
  if (end.fault !== undefined) return `${end.fault}: ${lastLine(end.text) ?? words}`;
  return undefined;
}

const WORDS_MAX = 200;

/** The last line that is not empty, shortened. */
export function lastLine(text: string): string | undefined {
  const line = text
    .split("\n")
    .map((one) => one.trim())
    .findLast((one) => one !== "");
  return line === undefined || line.length <= WORDS_MAX ? line : `${line.slice(0, WORDS_MAX)}…`;
}
