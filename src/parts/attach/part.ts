/**
 * Keeps the tasks that a person has taken over from starting, as long as the person is there or keeps them (`agents/attached.ts`). When
 * the process of the person has died, the task goes on.
 */
import {
  type Attached,
  attachedIn,
  gateOfPerson,
  isSame,
  judgePerson,
} from "../../agents/attached.ts";
import type { ClosedGate } from "../../core/documents.ts";
import { messageOf } from "../../core/errors.ts";
import type { Documents } from "../../host/document-store.ts";
import { listDirForSure } from "../../host/list-dir.ts";
import type { Part, StartLimit, StatusSource } from "../../supervisor/environment/part.ts";
import { NEVER, type Tick } from "../../supervisor/environment/service.ts";
import type { MakePart, PartHost } from "../../supervisor/part.ts";
import { lookForTask } from "../../view/find-task.ts";

/** How often the documents are read (ms). */
const LOOK_MS = 300;
/** So many looks in a row must say that a document is over. */
const LOOKS = 2;

class AttachPart implements Part, StartLimit, StatusSource {
  readonly ports = { startLimit: this, status: this };
  version = 0;
  gates: readonly ClosedGate[] = [];
  private shown = "";
  private lookAtMs = 0;
  /** How many looks in a row have said so, by task. */
  private readonly looks = new Map<string, number>();
  private hasAny = false;

  constructor(private readonly env: PartHost["env"]) {}

  async start(): Promise<void> {
    this.look();
  }

  work({ nowMs }: Tick): void {
    if (nowMs < this.lookAtMs) return;
    this.lookAtMs = nowMs + LOOK_MS;
    this.look();
  }

  nextMs(): number {
    return this.hasAny ? this.lookAtMs : NEVER;
  }

  private look(): void {
    const { alerts, tree } = this.env;
    const documents = attachedIn(tree.dir);
    const found: Attached[] = [];
    try {
      for (const file of listDirForSure(documents.dir)) {
        if (!file.endsWith(".json")) continue;
        try {
          const document = documents.load(file.slice(0, -".json".length));
          if (document !== undefined) found.push(document);
        } catch (error) {
          // The others go on. Until it can be read, its task tries again from time to time.
          alerts.report("attached", `cannot read attached/${file}: ${messageOf(error)}`);
        }
      }
    } catch (error) {
      alerts.report("attached", `cannot use attached/: ${messageOf(error)}`);
      return;
    }
    this.hasAny = found.length > 0;
    for (const document of found) if (this.isOver(document)) void this.end(documents, document);
    this.tell(found);
  }

  /** A session that only the document knows stays until the next run has it. */
  private async end(documents: Documents<Attached>, document: Attached): Promise<void> {
    const { id, session, state } = document;
    try {
      const after = await documents.update(id, (now) => {
        if (now === undefined || !isSame(now, document)) return now;
        return state === "here" && session !== undefined ? { ...now, state: "back" } : undefined;
      });
      if (state === "here" && after?.state !== "here")
        this.env.alerts.notice(`the person at ${id} is gone without an answer: the task goes on`);
    } catch (error) {
      this.env.alerts.report("attached", `cannot change attached/: ${messageOf(error)}`);
    }
  }

  /** One look may miss a task that is being moved, or a program that is just starting. */
  private isOver(document: Attached): boolean {
    const { id } = document;
    const looks = this.seemsOver(document) ? (this.looks.get(id) ?? 0) + 1 : 0;
    if (looks > 0 && looks < LOOKS) this.looks.set(id, looks);
    else this.looks.delete(id);
    return looks >= LOOKS;
  }

  private seemsOver(document: Attached): boolean {
    const { id, session, state, submission } = document;
    const { tree } = this.env;
    if (state === "here") return judgePerson(document, tree.dir) === "dead";
    // The session is where the next run finds it.
    if (state === "back" && session === undefined) return true;
    const place = lookForTask(tree, id);
    if (place === undefined || place.state === "done" || place.state === "failed") return true;
    // What the person said was about an earlier submission.
    const isOther = (place.name?.submission ?? submission) !== submission;
    return state !== "kept" && submission !== undefined && isOther;
  }

  private tell(documents: readonly Attached[]): void {
    const gates = documents.flatMap((one) => gateOfPerson(one) ?? []);
    const shown = JSON.stringify(gates);
    if (shown === this.shown) return;
    this.shown = shown;
    this.gates = gates;
    this.version++;
  }
}

export const attach: MakePart = ({ env }) => new AttachPart(env);
