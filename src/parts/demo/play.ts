/** The demo's acts in order. Everything it does a person could do with cp, ls, kill and jq. */
import fs from "node:fs";
import { join } from "node:path";
import { leaseOf, type ProcessingName } from "../../core/names.ts";
import { identityOf, judge, type ProcessIdentity, parseOwner } from "../../host/identity.ts";
import { findTree } from "../../host/process-tree.ts";
import { JournalTail } from "../../journal/read.ts";
import { duration } from "../../text/render.ts";
import { processingPlaces } from "../../view/find-task.ts";
import { readJsonObject, textOf } from "../../view/scan.ts";
import { type Count, countAll } from "./counts.ts";
import type { Narrator } from "./narrator.ts";
import { readNames, type Stage } from "./stage.ts";
import {
  CONFIG,
  type DroppedFile,
  EXPECTED,
  FIRST_DROP,
  HELD_BACK,
  LONG_HAUL,
  PAUSE,
  RESUME,
} from "./tasks.ts";

/** Long enough to see that nothing starts while it is paused (ms). */
const PAUSED_MS = 400;

type Event = Record<string, unknown>;

export interface Outcome {
  counts: Count[];
  killed: {
    task_id: string;
    worker: string;
    pid: number;
    taken_over_by: string;
    /** Processes that the killed worker had started and that are alive; must be 0. */
    programs_left: number;
  };
}

export class Play {
  private readonly stage: Stage;
  private readonly narrator: Narrator;
  private readonly tail: JournalTail;
  private readonly events: Event[] = [];
  private startedWallMs = 0;

  constructor(stage: Stage, narrator: Narrator) {
    this.stage = stage;
    this.narrator = narrator;
    this.tail = new JournalTail(stage.tree.events);
  }

  /** @throws ErrDemo, Interrupted */
  async perform(): Promise<Outcome> {
    await this.start();
    await this.stage.rest();
    await this.dropFiles();
    await this.stage.rest();
    const killed = await this.killWorker();
    await this.stage.rest();
    await this.pause();
    await this.stage.rest();
    return { killed, counts: await this.stop() };
  }

  private async start(): Promise<void> {
    const { stage, narrator } = this;
    narrator.chapter("A supervisor with 4 slots in 2 worker processes");
    fs.mkdirSync(stage.tree.dir, { mode: 0o700 });
    fs.writeFileSync(stage.tree.config, CONFIG, { mode: 0o600 });
    this.startedWallMs = Date.now();
    narrator.command("mailchute run --workers 4 --processes 2");
    const pid = stage.start(["--workers", "4", "--processes", "2"]);
    const workers = await stage.until("the start of 2 workers", () => {
      this.hear();
      const started = this.named("worker_started");
      return started.length >= 2 && started.map((event) => String(event["pid"]));
    });
    narrator.say(`Supervisor: pid ${pid}. Workers: pid ${workers.join(" and ")}.`);
  }

  private async dropFiles(): Promise<void> {
    const { narrator, stage } = this;
    narrator.chapter("Tasks are JSON files in a folder; any program can drop them");
    narrator.say("Dropped into mailbox/inbox/:");
    for (const file of FIRST_DROP) this.drop("mailbox", file);
    narrator.line();
    const settled = FIRST_DROP.map(({ name }) => name.replace(".json", ""));
    await this.untilSettled(settled);
    narrator.line();
    this.ls("mailbox/outbox");
    this.ls("mailbox/failed");
    narrator.say("broken_error.json says why; the file itself is kept beside it.");
    const flaky = readJsonObject(join(stage.tree.mailbox, "outbox", "flaky_result.json"));
    narrator.command("jq -c '{status, output, attempts}' mailbox/outbox/flaky_result.json");
    narrator.answer(
      JSON.stringify({
        status: flaky?.["status"],
        output: flaky?.["output"],
        attempts: flaky?.["attempts"],
      }),
    );
  }

  private async killWorker(): Promise<Outcome["killed"]> {
    const { narrator, stage } = this;
    narrator.chapter("A worker is killed in the middle of its task");
    this.drop("mailbox", LONG_HAUL);
    const { name, programs } = await stage.until("the start of long-haul", () => {
      this.hear();
      return this.findRunning("long-haul");
    });
    const pid = parseOwner(name.token)?.pid ?? 0;
    this.ls("mailbox/processing");
    narrator.say(
      `This name is the lease: run ${name.attempt}, held by the worker with pid ${pid}.`,
    );
    await stage.rest();
    narrator.command(`kill -9 ${pid}`);
    process.kill(pid, "SIGKILL");
    await this.untilSettled(["long-haul"]);
    await stage.until("the start of a new worker", () => {
      this.hear();
      return this.named("worker_started").length >= 3;
    });
    const programsLeft = programs.filter((program) => judge(program) === "alive").length;
    const [first, second] = this.startsOf("long-haul").map((event) => textOf(event["worker"]));
    const pids = programs.map((one) => one.pid).join(", ");
    narrator.say(`What the dead worker had started (pid ${pids}) was ended first.`);
    return {
      task_id: "long-haul",
      worker: first ?? "",
      pid,
      taken_over_by: second ?? "",
      programs_left: programsLeft,
    };
  }

  private async pause(): Promise<void> {
    const { narrator, stage } = this;
    narrator.chapter("Commands are files too");
    this.drop("control", PAUSE);
    await this.untilAnswered("pause");
    narrator.say("3 more tasks are dropped:");
    for (const file of HELD_BACK) this.drop("mailbox", file);
    await stage.rest(PAUSED_MS);
    narrator.say(`${duration(PAUSED_MS)} later they still wait:`);
    this.ls("mailbox/inbox");
    this.drop("control", RESUME);
    await this.untilAnswered("resume");
    await this.untilSettled(HELD_BACK.map(({ name }) => name.replace(".json", "")));
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

  private drop(mailbox: "mailbox" | "control", { name, text }: DroppedFile): void {
    this.narrator.file(name, text);
    fs.writeFileSync(join(this.stage.tree[mailbox], "inbox", name), `${text}\n`, { mode: 0o600 });
  }

  private ls(tray: string): void {
    this.narrator.list(`ls ${tray}`, readNames(join(this.stage.tree.dir, tray)));
  }

  private async untilSettled(ids: readonly string[]): Promise<void> {
    await this.stage.until(`the end of ${ids.join(", ")}`, () => {
      this.hear();
      return ids.every((id) =>
        this.events.some((event) => isEnd(event) && event["task_id"] === id),
      );
    });
  }

  private async untilAnswered(command: string): Promise<void> {
    const answer = join(this.stage.tree.control, "outbox", `${command}_result.json`);
    const record = await this.stage.until(`the answer to ${command}`, () => readJsonObject(answer));
    this.narrator.say(`control/outbox/${command}_result.json: ${JSON.stringify(record["result"])}`);
  }

  /** A running task whose program has started, with the pids of that. */
  private findRunning(
    id: string,
  ): { name: ProcessingName; programs: ProcessIdentity[] } | undefined {
    for (const { name } of processingPlaces(this.stage.tree)) {
      if (name?.id !== id || name.stage !== "w") continue;
      const programs = findTree(leaseOf(name)).map((pid) => identityOf(pid));
      // Its program is there: the task is in the middle of its work. Without /proc there is only the event to go by.
      const hasStarted = this.startsOf(id).length > 0 && !fs.existsSync("/proc/self/stat");
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

  /** Reads what is new in the journal and tells it. */
  private hear(): void {
    for (const event of this.tail.next()) {
      this.events.push(event);
      this.tell(event);
    }
  }

  private tell(event: Event): void {
    const task = textOf(event["task_id"]);
    const at = Number(event["t"]) - this.startedWallMs;
    const run = Number(event["attempt"]);
    const say = (text: string, how?: Parameters<Narrator["event"]>[3]): void =>
      this.narrator.event(at, task, text, how);
    switch (event["event"]) {
      case "started":
        if (run > 1) say(`run ${run} starts, on the worker with pid ${pidOf(event)}`, "cyan");
        return;
      case "retry_scheduled":
        say(`run ${run} failed; again in ${Number(event["delay_ms"])} ms`, "yellow");
        return;
      case "reclaimed":
        say("its worker is dead: taken back, ready for run 2", "yellow");
        return;
      case "quarantined":
        say(`refused: ${textOf(event["error"])}`, "red");
        return;
      case "failed":
        say(`failed for good: ${this.whyFailed(task)}`, "red");
        return;
      case "completed":
        if (event["status"] === "completed") say(this.describeResult(task));
        return;
      case "worker_started":
        if (this.named("worker_started").length > 2)
          this.narrator.event(
            at,
            "",
            `a new worker has started, pid ${String(event["pid"])}`,
            "cyan",
          );
        return;
    }
  }

  private whyFailed(id: string): string {
    const path = join(this.stage.tree.mailbox, "failed", `${id}_error.json`);
    const { exit_code: exitCode, attempts } = readJsonObject(path) ?? {};
    return exitCode === 65
      ? "exit code 65 means: do not retry"
      : `exit code ${String(exitCode)} in run ${String(attempts)}, its last`;
  }

  private describeResult(id: string): string {
    const path = join(this.stage.tree.mailbox, "outbox", `${id}_result.json`);
    const { output, attempts } = readJsonObject(path) ?? {};
    const text = textOf(output).trim();
    return text === "" ? `done in run ${String(attempts)}` : `done: ${text}`;
  }
}

function isEnd(event: Event): boolean {
  return event["event"] === "completed" || event["event"] === "quarantined";
}

/** Of the worker whose lease an event names. */
function pidOf(event: Event): number {
  return parseOwner(textOf(event["owner"]))?.pid ?? 0;
}

/** What is off, as one line each. */
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

/** Tasks in all, for the summary. */
export const TASK_COUNT =
  EXPECTED.completed.length + EXPECTED.failed.length + EXPECTED.refused.length;
