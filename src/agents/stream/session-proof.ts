/**
 * Finds out what the model of a session has got: its task, and people's messages. Only proof counts. The program's own record of the
 * session decides, because that is what a resumed session knows. Where no record can be read, the stream of the run decides.
 */
import { createHash } from "node:crypto";
import { join, resolve, sep } from "node:path";
import type { AgentProgram, SessionRecord } from "./agent-program.ts";
import { type Fact, isAnswer, type ReadLine } from "./facts.ts";
import { LineTail } from "./line-tail.ts";
import type { SessionDocument } from "./session-file.ts";
import type { Offer } from "./task-messages.ts";

/** Names the whole text that a program was given, for records that do not keep our uuids. */
export function hashOfText(text: string): string {
  return createHash("sha256").update(text.trim(), "utf8").digest("hex");
}

/** Whether this fact proves that the session has the packet with this uuid. */
export function provesPacket(fact: Fact, uuid: string): boolean {
  if (isAnswer(fact)) return true;
  if (fact.fact === "asked") return fact.uuid === uuid;
  return fact.fact === "message" && fact.uuid === uuid && fact.state === "read";
}

export class SessionProof {
  private readonly newReader: () => ReadLine;
  /** Uuids and hashes of the messages in the record; undefined when there is no record. */
  private readonly known: ReadonlySet<string> | undefined;

  /** @param recordPath the program's record of the session; undefined when there is none */
  constructor(
    private readonly stateDir: string,
    { newReader, record }: Pick<AgentProgram, "newReader" | "record">,
    recordPath: string | undefined,
  ) {
    this.newReader = () => newReader();
    this.known =
      record === undefined || recordPath === undefined ? undefined : readRecord(recordPath, record);
  }

  /** Whether the session knows its task. Without proof it does not, and the task is sent. */
  isTold({ offer, session_id: sessionId, untold }: SessionDocument): boolean {
    if (sessionId === null) return false;
    // A version before `offer` wrote `untold` for continued sessions only.
    if (offer === undefined) return untold !== true;
    return (
      this.inRecord(offer) ??
      (untold !== true || this.isInStream(offer, (fact) => provesPacket(fact, offer.uuid)))
    );
  }

  /** @param isSeen decides by a fact of the run's stream; used when there is no record */
  has(offer: Offer, isSeen: (fact: Fact, offer: Offer) => boolean): boolean {
    return this.inRecord(offer) ?? this.isInStream(offer, isSeen);
  }

  /** Undefined when the record cannot decide. */
  private inRecord({ sha256, uuid }: Offer): boolean | undefined {
    if (this.known === undefined || sha256 === undefined) return undefined;
    return this.known.has(uuid) || this.known.has(sha256);
  }

  private isInStream(offer: Offer, isSeen: (fact: Fact, offer: Offer) => boolean): boolean {
    const path = resolve(this.stateDir, offer.events);
    if (!path.startsWith(join(this.stateDir, "runs") + sep)) return false;
    const read = this.newReader();
    let isFound = false;
    const tail = new LineTail(path, offer.from, (line) => {
      isFound ||= read(line).some((fact) => isSeen(fact, offer));
    });
    tail.end();
    return isFound;
  }
}

function readRecord(path: string, record: SessionRecord): ReadonlySet<string> {
  const known = new Set<string>();
  const tail = new LineTail(path, 0, (line) => {
    const { uuid, text } = record.readMessage(line) ?? {};
    if (uuid !== undefined) known.add(uuid);
    if (text !== undefined) known.add(hashOfText(text));
  });
  tail.end();
  return known;
}
