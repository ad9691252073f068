/** Takes the answers that people write into the files of `questions/open/`, and tells of new questions, while a supervisor runs. */
import { messageOf } from "../../core/errors.ts";
import { QuestionStore } from "../../questions/question-store.ts";
import type { Part } from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";

/** Between two looks at the files (ms). It wakes nothing by itself: the look around that comes next is soon enough. */
const LOOK_MS = 500;
const FORGET_MS = 60 * 60 * 1000;
const DAY_MS = 24 * 60 * 60 * 1000;

class QuestionsPart implements Part {
  readonly ports = {};
  private readonly env: PartHost["env"];
  private readonly store: QuestionStore;
  private readonly told = new Set<string>();
  private lookAtMs = 0;
  private forgetAtMs = 0;

  constructor({ env }: Pick<PartHost, "env">) {
    this.env = env;
    this.store = new QuestionStore(env.tree.dir);
  }

  async start(): Promise<void> {}

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
    return NEVER;
  }

  async finish(): Promise<void> {}

  close(): void {}

  private look(): void {
    const { alerts, settings, trays } = this.env;
    const wallMs = trays.clock.wallMs();
    const { taken, refused } = this.store.takeEdits(settings.settle_ms, wallMs);
    for (const id of taken) alerts.notice(`the answer in questions/open/${id}.md was taken`);
    for (const { id, why } of refused)
      alerts.report(
        `question:${id}:${why}`,
        `questions/open/${id}.md: ${why}`,
        Number.POSITIVE_INFINITY,
      );
    for (const { id, question } of this.store.open(wallMs)) {
      if (this.told.has(id)) continue;
      this.told.add(id);
      alerts.alert("question", `${question} Answer with: mailchute answer ${id} TEXT`);
    }
  }
}

export const questions: MakePart = (host) => new QuestionsPart(host);
