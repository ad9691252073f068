/**
 * Takes the answers that people write into the files of `questions/open/`, and reports open questions. Tasks that wait for an answer do
 * not start before it: tasks in the inbox are not accepted, and tasks that a worker put back stay held.
 */
import type { Apart } from "../../core/apart.ts";
import type { ClosedGate } from "../../core/documents.ts";
import { messageOf } from "../../core/errors.ts";
import { closes } from "../../core/gates.ts";
import { DAY_MS } from "../../core/retention.ts";
import type { Lane } from "../../core/waiting-task.ts";
import type { QuestionText } from "../../questions/question-file.ts";
import { QuestionStore } from "../../questions/question-store.ts";
import { ordersApart } from "../../supervisor/environment/orders-apart.ts";
import type { Closed, Part, StartLimit, StatusSource } from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import { gateOf, HeldLanes } from "./held-lanes.ts";
import { Reminders } from "./reminders.ts";

/** Time between two looks at the files (ms). While no question is open, the supervisor's next regular tick is soon enough. */
const LOOK_MS = 500;
const FORGET_MS = 60 * 60 * 1000;

class QuestionsPart implements Part, StartLimit, StatusSource {
  readonly ports = { startLimit: this, status: this };
  version = 0;
  private readonly env: PartHost["env"];
  private readonly store: QuestionStore;
  private readonly apart: Apart;
  private readonly lanes = new HeldLanes();
  private readonly reminders = new Reminders();
  private open: QuestionText[] = [];
  gates: readonly ClosedGate[] = [];
  private lookAtMs = 0;
  private forgetAtMs = 0;

  constructor({ env }: Pick<PartHost, "env">) {
    this.env = env;
    this.store = new QuestionStore(env.tree.dir);
    this.apart = ordersApart(env, "the answer of the question");
    for (const fact of ["task:settled", "task:failed"] as const)
      env.facts.on(fact, () => this.lanes.noteEnd());
  }

  async start(): Promise<void> {
    this.note(this.store.open(this.env.trays.clock.wallMs()));
  }

  work({ nowMs }: Tick): void {
    if (nowMs < this.lookAtMs) return;
    this.lookAtMs = nowMs + LOOK_MS;
    try {
      this.look();
      if (nowMs < this.forgetAtMs) return;
      this.forgetAtMs = nowMs + FORGET_MS;
      const { settings, trays } = this.env;
      this.store.forget(trays.clock.wallMs() - settings.retention.failed_days * DAY_MS);
    } catch (error) {
      this.env.alerts.report("questions", `cannot use questions/: ${messageOf(error)}`);
    }
  }

  nextMs(): number {
    return this.open.length > 0 ? this.lookAtMs : NEVER;
  }

  closed(lane: Lane): Closed | undefined {
    const at = this.gates.findIndex((one) => closes(one, lane));
    const [gate, question] = [this.gates[at], this.open[at]];
    if (gate === undefined || question === undefined || this.lanes.mayPass(lane)) return undefined;
    const isShut = (): boolean => gate.until_ms === 0 && this.lanes.isShut(lane, question);
    return () => (isShut() ? { ...gate, is_shut: true } : gate);
  }

  noteStart(lane: Lane): boolean {
    if (!this.gates.some((gate) => closes(gate, lane))) return false;
    this.lanes.noteStart(lane);
    return true;
  }

  private look(): void {
    const { alerts, settings, trays } = this.env;
    const wallMs = trays.clock.wallMs();
    this.apart.eachNow(
      this.store.openIds(),
      (id) => id,
      (id) => {
        const edit = this.store.takeEdit(id, settings.settle_ms, wallMs);
        const file = `questions/open/${id}.md`;
        if (edit?.is === "taken") alerts.notice(`the answer in ${file} was taken`);
        if (edit?.is === "refused")
          alerts.report(
            `question:${id}:${edit.why}`,
            `${file}: ${edit.why}`,
            Number.POSITIVE_INFINITY,
          );
      },
    );
    this.note(this.store.open(wallMs));
    if (this.lanes.tryAgain(this.open, wallMs)) this.version++;
    for (const { id, question } of this.reminders.due(this.open, wallMs))
      alerts.alert(kindOf(id), `${question} Answer with: mailchute answer ${id} TEXT`);
  }

  private note(open: QuestionText[]): void {
    const before = this.open.map(({ id }) => id).join();
    this.open = open;
    if (open.map(({ id }) => id).join() === before) return;
    this.version++;
    this.gates = open.map((question) => gateOf(question, this.env.settings.agents));
  }
}

/** The kind of the alert. */
function kindOf(id: string): string {
  if (id.startsWith("base.")) return "base_red";
  return id.startsWith("budget.") ? "budget" : "question";
}

export const questions: MakePart = (host) => new QuestionsPart(host);
