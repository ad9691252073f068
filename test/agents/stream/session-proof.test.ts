/** What a session knows after a kill at any line of what its program had written by then: only proof counts. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { AgentProgram } from "../../../src/agents/stream/agent-program.ts";
import { newSession, type SessionDocument } from "../../../src/agents/stream/session-file.ts";
import { hashOfText, SessionProof } from "../../../src/agents/stream/session-proof.ts";
import type { Offer } from "../../../src/agents/stream/task-messages.ts";
import { claudeProgram } from "../../../src/parts/claude/kind.ts";
import { appServerProgram, codexProgram } from "../../../src/parts/codex/kind.ts";
import { tempDir } from "../../support/temp-dir.ts";

const STREAM = "runs/r1/events.jsonl";
const UUID = "2ec8b774-b7da-4273-8ce4-4a339ac9d38c";
const TASK = "First job é\n\n## Part\n  indented  \n";
const NO_FACT = (): boolean => false;

const sampleLines = (name: string): string[] =>
  fs
    .readFileSync(new URL(`samples/${name}.jsonl`, import.meta.url), "utf8")
    .trimEnd()
    .split("\n");

interface Place {
  stateDir: string;
  record: string | undefined;
  session: SessionDocument;
}

/** A session whose program was killed when it had written these lines. @param record undefined: it keeps none */
function killed(stream: readonly string[], record: readonly string[] | undefined): Place {
  const stateDir = tempDir();
  fs.mkdirSync(join(stateDir, "runs/r1"), { recursive: true });
  fs.writeFileSync(join(stateDir, STREAM), stream.map((line) => `${line}\n`).join(""));
  const path = join(stateDir, "record.jsonl");
  if (record !== undefined) fs.writeFileSync(path, record.map((line) => `${line}\n`).join(""));
  const of = { task_id: "a", agent: "x", kind: "codex", account: "default", cwd: "/" };
  const session = { ...newSession(of), session_id: "s", offer: offerOf() };
  return { stateDir, record: record === undefined ? undefined : path, session };
}

function offerOf(more: Partial<Offer> = {}): Offer {
  const at = 0;
  return {
    v: 1,
    uuid: UUID,
    via: "packet",
    events: STREAM,
    from: 0,
    at,
    sha256: hashOfText(TASK),
    ...more,
  };
}

type Rule = (program: AgentProgram, place: Place) => boolean;

const isTold: Rule = (program, { stateDir, record, session }) =>
  new SessionProof(stateDir, program, record).isTold(session);

/** Rules that must be found out. */
const BROKEN: Readonly<Record<string, Rule>> = {
  "a session with an id knows its task": (_, { session }) => session.session_id !== null,
  "a record that exists has the task": (program, place) =>
    place.record !== undefined || isTold(program, place),
  "a turn that has begun knows the task": (program, { stateDir }) => {
    const read = program.newReader();
    const lines = fs.readFileSync(join(stateDir, STREAM), "utf8").trimEnd().split("\n");
    return lines.some((line) => read(line).some(({ fact }) => fact === "turn_started"));
  },
};

/** Where the rule is wrong, of all kills between two lines of the stream and of the record. */
function faultsOf(rule: Rule): string[] {
  const faults: string[] = [];
  const check = (what: string, program: AgentProgram, place: Place, expected: boolean): void => {
    if (rule(program, place) !== expected) faults.push(`${what}: expected ${expected}`);
  };
  const begun = ['{"type":"thread.started","thread_id":"s"}', '{"type":"turn.started"}'];
  const rollout = sampleLines("codex-rollout");
  const promptAt = rollout.findIndex((line) => line.includes("First job"));
  for (let n = 0; n <= rollout.length; n++)
    for (const program of [codexProgram, appServerProgram])
      for (const untold of [true, false]) {
        const place = killed(begun, rollout.slice(0, n));
        if (!untold) delete place.session.untold;
        check(`codex, ${n} lines of its rollout`, program, place, n > promptAt);
      }
  const transcript = sampleLines("claude-transcript");
  for (let n = 0; n <= transcript.length; n++)
    check(`claude, ${n} lines`, claudeProgram, killed([], transcript.slice(0, n)), n > 2);
  // Without a record the stream decides.
  const call = { id: "1", type: "command_execution", command: "true", status: "in_progress" };
  const stream = [...begun, JSON.stringify({ type: "item.started", item: call })];
  for (let n = 0; n <= stream.length; n++)
    check(
      `codex, ${n} lines of its stream`,
      codexProgram,
      killed(stream.slice(0, n), undefined),
      n === 3,
    );
  return faults;
}

it("knows its task only when what the program keeps of it has the whole packet, wherever the program was killed", () => {
  expect(faultsOf(isTold)).toEqual([]);
});

it.each(Object.entries(BROKEN))("finds a rule that is wrong: %s", (_, rule) => {
  expect(faultsOf(rule)).not.toEqual([]);
});

it("takes the program's echo of the packet as proof where no record can be read", () => {
  const echo = {
    type: "user",
    isReplay: true,
    uuid: UUID,
    message: { role: "user", content: TASK },
  };
  expect(isTold(claudeProgram, killed([JSON.stringify(echo)], undefined))).toBe(true);
  const other = JSON.stringify({ ...echo, uuid: "another" });
  expect(isTold(claudeProgram, killed([other], undefined))).toBe(false);
});

it("counts a message as read by the same rule: in the record, in the middle of a turn too", () => {
  const lines = sampleLines("claude-transcript");
  const mail = offerOf({
    uuid: "02abf1c3-8a58-48eb-8054-0b05a9aae8ba",
    via: "message",
    sha256: "x",
  });
  const hasMail = (n: number): boolean => {
    const { stateDir, record } = killed([], lines.slice(0, n));
    return new SessionProof(stateDir, claudeProgram, record).has(mail, () => true);
  };
  const readAt = lines.findIndex((line) => line.includes("queued_command"));
  expect(lines.map((_, n) => hasMail(n + 1))).toEqual(lines.map((_, n) => n >= readAt));
});

it("goes by what earlier versions have written: no offer, and no hash in an offer", () => {
  const { stateDir, session } = killed([], undefined);
  const proof = new SessionProof(stateDir, codexProgram, undefined);
  const { offer: _, untold: __, ...old } = session;
  expect(proof.isTold(old)).toBe(true);
  expect(proof.isTold({ ...old, untold: true })).toBe(false);
  const { sha256: ___, ...offer } = offerOf();
  expect(proof.has(offer, NO_FACT)).toBe(false);
});
