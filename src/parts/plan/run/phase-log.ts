/**
 * Keeps `evidence/<node>/phases.json` and the artefact of each phase, so that the next attempt of the same submission continues
 * after the finished phases. A new submission starts again from the first phase; the old files are kept in `earlier/`.
 */
import fs from "node:fs";
import { join } from "node:path";
import type { Envelope } from "../../../core/envelope.ts";
import { systemCode } from "../../../core/errors.ts";
import { isObject } from "../../../core/json-object.ts";
import type { Phase } from "../../../core/phases.ts";
import { readDocument } from "../../../host/documents.ts";
import { makeDirs } from "../../../host/make-dirs.ts";
import { replaceText } from "../../../host/replace-document.ts";

export interface PhaseRecord {
  phase: Phase;
  /** Only `finished` phases are not run again. `reopened`: the phase was finished, but its work turned out to be bad or a message came. */
  status: "finished" | "failed" | "checkpoint" | "reopened";
  /** From 1. */
  attempt: number;
  run: string;
  agent: string;
  /** ISO 8601. */
  started_at: string;
  finished_at: string;
  duration_ms: number;
  summary: string;
  /** File name of the artefact in the same folder. */
  artefact: string;
  envelope: Envelope;
}

export interface PhasesDocument {
  /** Nonce of the accepted submission: the part `s` of its leases. */
  submission: string;
  /** One record for each phase, in the order in which they ran. */
  phases: PhaseRecord[];
}

const PLAIN_NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/;

export class PhaseLog {
  private constructor(
    readonly dir: string,
    private readonly document: PhasesDocument,
    private readonly isDurable: boolean,
  ) {}

  /**
   * @param dir `evidence/<node>`; created when the first file is written
   * @param isDurable true: a recorded phase survives a power cut
   */
  static open(dir: string, submission: string, isDurable: boolean): PhaseLog {
    const found = readDocument<PhasesDocument>(join(dir, "phases.json"));
    if (found !== undefined && isPhases(found)) {
      if (found.submission === submission) return new PhaseLog(dir, found, isDurable);
      // The document is moved last: if this process dies before that, the next one moves the rest.
      const files = [...found.phases.map(({ artefact }) => artefact), "phases.json"];
      keepEarlier(dir, String(found.submission), files);
    } else if (fs.existsSync(join(dir, "phases.json"))) {
      keepEarlier(dir, `unreadable-${submission}`, ["phases.json"]);
    }
    return new PhaseLog(dir, { submission, phases: [] }, isDurable);
  }

  finished(phase: Phase): PhaseRecord | undefined {
    return this.document.phases.find((one) => one.phase === phase && one.status === "finished");
  }

  /** Writes the artefact before the record, so that every finished phase has its artefact. */
  record(record: PhaseRecord, artefact: string): void {
    const { submission, phases } = this.document;
    const before = phases.find(({ phase }) => phase === record.phase);
    if (before !== undefined && before.attempt !== record.attempt)
      keepEarlier(this.dir, `${submission}.${before.attempt}`, [before.artefact]);
    this.replace(record.artefact, artefact);
    this.document.phases = [...phases.filter(({ phase }) => phase !== record.phase), record];
    this.write();
  }

  /** Marks the phases from this one on to run again. */
  reopenFrom(from: Phase, phases: readonly Phase[]): void {
    const again = new Set(phases.slice(Math.max(0, phases.indexOf(from))));
    for (const record of this.document.phases)
      if (record.status === "finished" && again.has(record.phase)) record.status = "reopened";
    this.write();
  }

  private write(): void {
    this.replace("phases.json", `${JSON.stringify(this.document, null, 2)}\n`);
  }

  /** Replaces a file. It is staged in another folder, so that the evidence folder lists only evidence. */
  private replace(file: string, text: string): void {
    makeDirs(this.dir, 2);
    const { isDurable } = this;
    replaceText(join(this.dir, file), text, {
      stagingDir: join(this.dir, "..", ".tmp"),
      isDurable,
    });
  }
}

/** Checks a document. Its names become parts of paths, so a name that leads elsewhere is refused. */
function isPhases({ submission, phases }: PhasesDocument): boolean {
  if (typeof submission !== "string" || !PLAIN_NAME.test(submission)) return false;
  return Array.isArray(phases) && phases.every(isPhase);
}

function isPhase(value: unknown): boolean {
  if (!isObject(value) || !isObject(value["envelope"])) return false;
  const { phase, artefact } = value;
  return typeof phase === "string" && typeof artefact === "string" && PLAIN_NAME.test(artefact);
}

/** Moves files of an earlier run to `earlier/<name>/`. Skips missing files. @param dir `evidence/<node>` */
export function keepEarlier(dir: string, name: string, files: readonly string[]): void {
  const to = join(dir, "earlier", name);
  makeDirs(to, 2);
  for (const file of files) {
    try {
      fs.renameSync(join(dir, file), join(to, file));
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
    }
  }
}
