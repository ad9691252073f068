/** Runs the acts of the demo. A person could do all of it with cp, ls, kill and jq. */
import fs from "node:fs";
import { join } from "node:path";
import { leaseOf, type ProcessingName } from "../../core/names.ts";
import { identityOf, judge, type ProcessIdentity, parseOwner } from "../../host/identity.ts";
import { findTree } from "../../host/process-tree.ts";
import { processes } from "../../host/processes/processes.ts";
import { writeNew } from "../../host/regular-file.ts";
import { JournalTail } from "../../journal/tail.ts";
import type { Paint } from "../../text/render.ts";
import { processingPlaces } from "../../view/find-task.ts";
import { readJsonObject, textOf } from "../../view/scan.ts";
import { ACTS, CONFIG, type DroppedFile, type Step } from "./acts.ts";
import { type Count, countAll } from "./counts.ts";
import type { Narrator } from "./narrator.ts";
import { readNames, type Stage } from "./stage.ts";

type Event = Record<string, unknown>;

/** The killed worker and the task it ran. */
interface Killed {
  task_id: string;
  worker: string;
  pid: number;
  taken_over_by: string;
  /** How many processes of the killed worker's task are still alive; must be 0. */
  programs_left: number;
}

export interface Outcome {
  counts: Count[];
  killed: Killed;
}

export class Play {
  private readonly tail: JournalTail;
  private readonly events: Event[] = [];
  private startedWallMs = 0;
  private killed: Killed = { task_id: "", worker: "", pid: 0, taken_over_by: "", programs_left: 0 };

  constructor(
    private readonly stage: Stage,
    private readonly narrator: Narrator,
  ) {
    this.tail = new JournalTail(stage.tree.events);
  }

  /** @throws ErrDemo, Interrupted */
  async perform(): Promise<Outcome> {
    for (const { title, steps } of ACTS) {
      this.narrator.chapter(title);
      for (const step of steps) await this.take(step);
      await this.stage.rest();
    }
    return { killed: this.killed, counts: await this.stop() };
  }

  private async take(step: Step): Promise<void> {
    if (step === "blank") this.narrator.line();
    else if ("say" in step) this.narrator.say(step.say);
    else if ("start" in step) await this.start(step.start);
    else if ("drop" in step) for (const file of step.drop) this.drop("mailbox", file);
    else if ("order" in step) await this.order(step.order);
    else if ("untilSettled" in step) await this.untilSettled(step.untilSettled);
    else if ("waitMs" in step) await this.stage.rest(step.waitMs);
    else if ("ls" in step) this.ls(step.ls);
    else if ("jq" in step) this.jq(step.jq.id, step.jq.fields);
    else await this.killWorkerOf(step.kill);
  }

  private async start(args: readonly string[]): Promise<void> {
    const { stage, narrator } = this;
    fs.mkdirSync(stage.tree.dir, { mode: 0o700 });
    writeNew(stage.tree.config, CONFIG);
    this.startedWallMs = Date.now();
    narrator.command(`mailchute run ${args.join(" ")}`);
    const pid = stage.start(args);
    await this.untilHeard("the start of 2 workers", () => this.named("worker_started").length >= 2);
    const workers = this.named("worker_started").map((event) => String(event["pid"]));
    narrator.say(`Supervisor: pid ${pid}. Workers: pid ${workers.join(" and ")}.`);
  }

  private drop(mailbox: "mailbox" | "control", { id, text }: DroppedFile): void {
    const name = `${id}.json`;
    this.narrator.file(name, text);
    writeNew(join(this.stage.tree[mailbox], "inbox", name), `${text}\n`);
  }

  private async order(file: DroppedFile): Promise<void> {
    this.drop("control", file);
    const answer = join(this.stage.tree.control, "outbox", `${file.id}_result.json`);
    const record = await this.stage.until(`the answer to ${file.id}`, () => readJsonObject(answer));
    this.narrator.say(`control/outbox/${file.id}_result.json: ${JSON.stringify(record["result"])}`);
  }

  private ls(tray: string): void {
    this.narrator.list(`ls ${tray}`, readNames(join(this.stage.tree.dir, tray)));
  }

  private jq(id: string, fields: readonly string[]): void {
    const record = this.record("outbox", `${id}_result.json`);
    this.narrator.command(`jq -c '{${fields.join(", ")}}' mailbox/outbox/${id}_result.json`);
    this.narrator.answer(
      JSON.stringify(Object.fromEntries(fields.map((field) => [field, record[field]]))),
    );
  }

  private async killWorkerOf(file: DroppedFile): Promise<void> {
    const { narrator, stage } = this;
    const { id } = file;
    const { name, programs } = await this.untilHeard(`the start of ${id}`, () =>
      this.findRunning(id),
    );
    const pid = parseOwner(name.token)?.pid ?? 0;
    this.ls("mailbox/processing");
    narrator.say(
      `This name is the lease: run ${name.attempt}, held by the worker with pid ${pid}.`,
    );
    await stage.rest();
    narrator.command(`kill -9 ${pid}`);
    process.kill(pid, "SIGKILL");
    await this.untilSettled([file]);
    await this.untilHeard(
      "the start of a new worker",
      () => this.named("worker_started").length >= 3,
    );
    const programsLeft = programs.filter((program) => judge(program) === "alive").length;
    const [first = "", second = ""] = this.startsOf(id).map((event) => textOf(event["worker"]));
    const pids = programs.map((one) => one.pid).join(", ");
    narrator.say(`What the dead worker had started (pid ${pids}) was ended first.`);
    this.killed = {
      task_id: id,
      worker: first,
      pid,
      taken_over_by: second,
      programs_left: programsLeft,
    };
  }

  private async stop(): Promise<Count[]> {
    const { narrator, stage } = this;
    narrator.chapter("The end: what the files say against what is expected");
    const exitCode = await stage.stop();
    const left = stage.processes().length;
    this.hear();
    this.tail.close();
    const leases = new JournalTail(stage.tree.leases);
    const counts = [
      ...countAll(stage.tree, this.events, leases.next()),
      { name: "exit code of the supervisor", expected: 0, found: exitCode ?? -1 },
      { name: "processes left", expected: 0, found: left },
    ];
    leases.close();
    for (const { name, expected, found } of counts) {
      const isRight = expected === found;
      const mark = isRight ? narrator.paint("green", "ok ") : narrator.paint("red", "OFF");
      const correction = isRight ? "" : narrator.paint("red", `, expected ${expected}`);
      narrator.line(`   ${mark} ${String(found).padStart(3)}  ${name}${correction}`);
    }
    return counts;
  }

  private async untilSettled(files: readonly DroppedFile[]): Promise<void> {
    const isSettled = ({ id }: DroppedFile): boolean =>
      [...this.named("completed"), ...this.named("quarantined")].some(
        (event) => event["task_id"] === id,
      );
    await this.untilHeard(`the end of ${files.map(({ id }) => id).join(", ")}`, () =>
      files.every(isSettled),
    );
  }

  /** Like `Stage.until`, but prints new events of the journal before each look. */
  private untilHeard<T>(what: string, look: () => T | undefined | false): Promise<T> {
    return this.stage.until(what, () => {
      this.hear();
      return look();
    });
  }

  /** A running task whose program has started, with the processes of that program. */
  private findRunning(
    id: string,
  ): { name: ProcessingName; programs: ProcessIdentity[] } | undefined {
    for (const { name } of processingPlaces(this.stage.tree)) {
      if (name?.id !== id || name.stage !== "w") continue;
      const programs = findTree(leaseOf(name)).map((pid) => identityOf(pid));
      // A running program shows that the task has begun. Without a list of processes only the event `started` shows it.
      const hasStarted = this.startsOf(id).length > 0 && processes().look().rows.length === 0;
      if (programs.length > 0 || hasStarted) return { name, programs };
    }
    return undefined;
  }

  private named(name: string): Event[] {
    return this.events.filter((event) => event["event"] === name);
  }

  private startsOf(id: string): Event[] {
    return this.named("started").filter((event) => event["task_id"] === id);
  }

  private hear(): void {
    for (const event of this.tail.next()) {
      this.events.push(event);
      const [text, how] = this.describe(event) ?? [];
      const atMs = Number(event["t"]) - this.startedWallMs;
      if (text !== undefined) this.narrator.event(atMs, textOf(event["task_id"]), text, how);
    }
  }

  /** Undefined for an event that the demo does not show. */
  private describe(event: Event): [text: string, how?: Paint] | undefined {
    const id = textOf(event["task_id"]);
    const run = Number(event["attempt"]);
    switch (event["event"]) {
      case "started": {
        const pid = parseOwner(textOf(event["owner"]))?.pid ?? 0;
        return run > 1 ? [`run ${run} starts, on the worker with pid ${pid}`, "cyan"] : undefined;
      }
      case "retry_scheduled":
        return [`run ${run} failed; again in ${Number(event["delay_ms"])} ms`, "yellow"];
      case "reclaimed":
        return ["its worker is dead: taken back, ready for run 2", "yellow"];
      case "quarantined":
        return [`refused: ${textOf(event["error"])}`, "red"];
      case "failed":
        return [`failed for good: ${this.whyFailed(id)}`, "red"];
      case "completed":
        return event["status"] === "completed" ? [this.describeResult(id)] : undefined;
      case "worker_started":
        return this.named("worker_started").length > 2
          ? [`a new worker has started, pid ${String(event["pid"])}`, "cyan"]
          : undefined;
      default:
        return undefined;
    }
  }

  private whyFailed(id: string): string {
    const { exit_code: exitCode, attempts } = this.record("failed", `${id}_error.json`);
    return exitCode === 65
      ? "exit code 65 means: do not retry"
      : `exit code ${String(exitCode)} in run ${String(attempts)}, its last`;
  }

  private describeResult(id: string): string {
    const { output, attempts } = this.record("outbox", `${id}_result.json`);
    const text = textOf(output).trim();
    return text === "" ? `done in run ${String(attempts)}` : `done: ${text}`;
  }

  private record(tray: string, name: string): Record<string, unknown> {
    return readJsonObject(join(this.stage.tree.mailbox, tray, name)) ?? {};
  }
}

/** All that is wrong, one line each. */
export function faultsOf({ counts, killed }: Outcome): string[] {
  const faults = counts
    .filter((count) => count.expected !== count.found)
    .map(({ name, expected, found }) => `${name}: expected ${expected}, found ${found}`);
  if (killed.taken_over_by === "" || killed.taken_over_by === killed.worker)
    faults.push(`${killed.task_id} was not taken over by another worker`);
  if (killed.programs_left > 0)
    faults.push(`${killed.programs_left} processes of the killed worker's task are still there`);
  return faults;
}
