/**
 * Carries out what keys ask for, with the same control files and verbs as the command line. Shows three steps of each action:
 * written, taken up, and its effect. Shows an action as done only when a file says so.
 */
import fs from "node:fs";
import { join } from "node:path";
import { answerQuestion } from "../../cli/commands/answer.ts";
import type { Context } from "../../cli/shell/command-spec.ts";
import { describeError } from "../../cli/shell/error-text.ts";
import { existingTree, openMailbox } from "../../cli/shell/options.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { readAcknowledgement } from "../../mailbox/commands/command-queue.ts";
import { openControl, sendCommand } from "../../mailbox/commands/send-command.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { retry } from "../../mailbox/retry/retry.ts";
import { resultText } from "../../text/command-result.ts";
import { inert } from "../../text/inert.ts";
import { counted, duration } from "../../text/render.ts";
import { lookForTask } from "../../view/find-task.ts";
import type { Overview } from "../../view/overview.ts";
import { textOf } from "../../view/scan.ts";
import type { Deed } from "./state.ts";

/** How many commands or tasks are checked in one look. */
const LOOKED_AT_MAX = 50;
/** The next key counts from the last number of slots that was asked for, if that was less than this ago (ms). */
const FRESH_MS = 3000;
const UNATTENDED = "no supervisor takes it up until `mailchute run`";

/** A command or a task that was written. */
interface Written {
  /** The id of the command in `control/inbox/` or of the task in the inbox. */
  id: string;
  phase: "written" | "taken up" | "done" | "refused";
  /** Its effect, or why it was refused. */
  said: string;
}

interface Step {
  what: string;
  /** Monotonic ms. */
  sentMs: number;
  endedMs: number | undefined;
  kind: "command" | "task";
  all: Written[];
}

export class Actions {
  private step: Step | undefined;
  private said = "";
  private control: Trays | undefined;
  private target: { slots: number; atMs: number } | undefined;

  /** @param slotsByDefault the setting `workers` */
  constructor(
    private readonly ctx: Context,
    private readonly tree: StateTree,
    private readonly slotsByDefault: number,
  ) {}

  /** Carries out a deed. An error becomes the text of the step. */
  async perform(deed: Deed, overview: Overview | undefined): Promise<void> {
    try {
      // Sending a command makes missing folders, but it must not make a tree that was removed.
      existingTree(this.ctx);
      switch (deed.does) {
        case "pause":
        case "resume":
          return await this.send(deed.does, [{ command: deed.does, args: {} }]);
        case "workers": {
          const workers = this.slotsAfter(deed.by, overview);
          return await this.send(`set-workers ${workers}`, [
            { command: "set-workers", args: { workers } },
          ]);
        }
        case "cancel": {
          const args = (node: string) => (deed.isFinal ? { node, final: true } : { node });
          const what = `${deed.isFinal ? "cancel" : "requeue"} ${named(deed.ids)}`;
          return await this.send(
            what,
            deed.ids.map((node) => ({ command: "cancel", args: args(node) })),
          );
        }
        case "retry":
          return await this.retry(deed.ids);
        case "answer": {
          const { said } = await answerQuestion(this.ctx, deed.id, deed.text);
          this.step = undefined;
          this.said = `answer written: ${said}`;
          return;
        }
        default:
          return;
      }
    } catch (error) {
      const { message, hint } = describeError(error);
      this.step = undefined;
      this.said = inert(`not done: ${message}${hint === undefined ? "" : `; ${hint}`}`);
    }
  }

  /** Checks the progress of the last action. @returns a text for people; "" before the first action */
  look(isAttended: boolean): string {
    const { step } = this;
    if (step === undefined) return this.said;
    const open = step.all.filter(({ phase }) => phase === "written" || phase === "taken up");
    for (const one of open.slice(0, LOOKED_AT_MAX))
      if (step.kind === "command") this.lookAtCommand(one);
      else this.lookAtTask(one);
    const isOpen = step.all.some(({ phase }) => phase === "written" || phase === "taken up");
    if (!isOpen) step.endedMs ??= performance.now();
    return describe(step, isAttended);
  }

  private async send(
    what: string,
    commands: readonly { command: string; args: Record<string, unknown> }[],
  ): Promise<void> {
    const step = this.begin(what, "command");
    for (const { command, args } of commands) {
      const { id } = await sendCommand(this.tree.dir, command, args);
      step.all.push({ id, phase: "written", said: "" });
    }
  }

  private async retry(ids: readonly string[]): Promise<void> {
    const { trays } = await openMailbox(this.ctx);
    const step = this.begin(`retry ${named(ids)}`, "task");
    for (const id of ids) {
      try {
        await retry(trays, id);
        step.all.push({ id, phase: "written", said: "" });
      } catch (error) {
        const { message, hint } = describeError(error);
        const said = inert(`${message}${hint === undefined ? "" : `; ${hint}`}`);
        step.all.push({ id, phase: "refused", said });
      }
    }
  }

  private begin(what: string, kind: Step["kind"]): Step {
    this.step = { what, sentMs: performance.now(), endedMs: undefined, kind, all: [] };
    return this.step;
  }

  private slotsAfter(by: number, overview: Overview | undefined): number {
    const nowMs = performance.now();
    const isFresh = this.target !== undefined && nowMs - this.target.atMs < FRESH_MS;
    const total = overview?.slots.total ?? 0;
    const now = isFresh ? this.target?.slots : total > 0 ? total : this.slotsByDefault;
    const slots = Math.max(0, (now ?? 0) + by);
    this.target = { slots, atMs: nowMs };
    return slots;
  }

  private lookAtCommand(one: Written): void {
    this.control ??= openControl(this.tree.dir);
    const { control } = this;
    const record = readAcknowledgement(control, one.id);
    if (record === undefined) {
      if (!fs.existsSync(join(control.inbox, `${one.id}.json`))) one.phase = "taken up";
      return;
    }
    const isDone = record["status"] === "completed";
    one.phase = isDone ? "done" : "refused";
    one.said = isDone
      ? resultText((record["result"] ?? {}) as Record<string, unknown>)
      : inert(textOf(record["error"], "refused"));
  }

  private lookAtTask(one: Written): void {
    const state = lookForTask(this.tree, one.id)?.state;
    if (state === undefined || state === "waiting") return;
    const isBegun = state !== "ready" && state !== "held";
    one.phase = isBegun ? "done" : "taken up";
    one.said = state === "running" ? "it runs" : `it is ${state}`;
  }
}

function named(ids: readonly string[]): string {
  return ids.length === 1 ? inert(ids[0] ?? "") : counted(ids.length, "task");
}

/** `pause: written, taken up, paused: true (0.04 s)`. */
function describe({ what, all, kind, sentMs, endedMs }: Step, isAttended: boolean): string {
  const place = kind === "command" ? "control/inbox" : "inbox";
  const [only] = all;
  if (all.length === 1 && only !== undefined) {
    const took = endedMs === undefined ? "" : ` (${duration(endedMs - sentMs)})`;
    switch (only.phase) {
      case "refused":
        return `${what}: refused: ${only.said}`;
      case "done":
        return `${what}: written, taken up, ${only.said}${took}`;
      case "taken up":
        return `${what}: written, taken up …`;
      case "written":
        return isAttended ? `${what}: written …` : `${what}: queued in ${place}; ${UNATTENDED}`;
    }
  }
  const count = (phase: Written["phase"]): number =>
    all.filter((one) => one.phase === phase).length;
  const refused = count("refused");
  const why = all.find(({ phase }) => phase === "refused")?.said ?? "";
  const parts = [
    `${what}: ${all.length} written`,
    `${count("taken up") + count("done")} taken up`,
    `${count("done")} ${kind === "command" ? "done" : "begun"}`,
    ...(refused > 0 ? [`${refused} refused: ${why}`] : []),
    ...(isAttended ? [] : [UNATTENDED]),
  ];
  return parts.join(", ");
}
