/** Our side of `codex app-server`: what it asks for, in which order, and what becomes of messages. */
import { expect, it } from "vitest";
import type { Fact } from "../../../src/agents/stream/facts.ts";
import type { Permissions } from "../../../src/core/settings.ts";
import { AppServerDialogue } from "../../../src/parts/codex/app-server-dialogue.ts";

interface Options {
  sessionId?: string;
  earlier?: string[];
  permissions?: Permissions;
}

function newDialogue({ sessionId, earlier = [], permissions }: Options = {}) {
  const sent: { id?: number; method?: string; params?: Record<string, unknown> }[] = [];
  const settings = { name: "c", kind: "codex", ...(permissions && { permissions }) } as const;
  const dialogue = new AppServerDialogue({ settings, packet: "go", sessionId, cwd: "/w" });
  const hear = (line: object): Fact[] => dialogue.read(JSON.stringify(line));
  const last = () => sent.at(-1) ?? {};
  const reply = (result: object): Fact[] => hear({ id: last().id, result });
  const refuse = (message: string): Fact[] => hear({ id: last().id, error: { message } });
  const turn = (what: "started" | "completed", fields: object = {}): Fact[] =>
    hear({ method: `turn/${what}`, params: { threadId: "t", turn: { id: "turn-1", ...fields } } });
  const readMessage = (clientId: string): Fact[] => {
    const item = { type: "userMessage", clientId, content: [] };
    return hear({ method: "item/started", params: { threadId: "t", item } });
  };
  dialogue.begin({ uuid: "packet", packet: "go", earlier }, (text) => sent.push(JSON.parse(text)));
  const openThread = (): Fact[] => {
    reply({});
    return reply({ thread: { id: "t" }, model: "m" });
  };
  const startTurn = (): void => {
    openThread();
    reply({ turn: { id: "turn-1" } });
    turn("started");
  };
  const methods = () => sent.map(({ method }) => method);
  return {
    dialogue,
    sent,
    last,
    methods,
    hear,
    reply,
    refuse,
    turn,
    readMessage,
    openThread,
    startTurn,
  };
}

const cancelled = (uuid: string): Fact => ({ fact: "message", uuid, state: "cancelled" });

it("opens a thread and begins a turn with the packet, each when the step before was answered", () => {
  const { methods, last, startTurn, dialogue } = newDialogue();
  expect(methods()).toEqual(["initialize"]);
  expect(dialogue.isReady).toBe(false);
  startTurn();
  expect(methods()).toEqual(["initialize", "initialized", "thread/start", "turn/start"]);
  expect(last().params).toMatchObject({ threadId: "t", clientUserMessageId: "packet" });
  expect(dialogue.isReady).toBe(true);
});

it("asks a thread that it resumes for earlier messages, page by page, before it begins a turn", () => {
  const page = (clientId: string, nextCursor: string | null): object => ({
    data: [{ item: { type: "userMessage", clientId } }],
    nextCursor,
  });
  const { methods, last, openThread, reply } = newDialogue({ sessionId: "t", earlier: ["a", "b"] });
  openThread();
  expect(last()).toMatchObject({ method: "thread/items/list", params: { threadId: "t" } });
  expect(reply(page("a", "more"))).toEqual([{ fact: "message", uuid: "a", state: "read" }]);
  expect(last().params).toMatchObject({ cursor: "more" });
  expect(reply(page("other", null))).toEqual([cancelled("b")]);
  expect(methods().slice(2)).toEqual([
    "thread/resume",
    "thread/items/list",
    "thread/items/list",
    "turn/start",
  ]);
});

it("says in a new turn what came too late for the one before, under the same id", () => {
  const { dialogue, last, methods, startTurn, turn, readMessage } = newDialogue();
  startTurn();
  dialogue.say("m1", "one");
  dialogue.say("m2", "two");
  expect(last()).toMatchObject({ method: "turn/steer", params: { expectedTurnId: "turn-1" } });
  readMessage("m1");
  turn("completed", { status: "completed" });
  expect(last()).toMatchObject({ method: "turn/start", params: { clientUserMessageId: "m2" } });
  turn("started", { id: "turn-2" });
  readMessage("m2");
  turn("completed", { id: "turn-2", status: "completed" });
  expect(methods().slice(3)).toEqual(["turn/start", "turn/steer", "turn/steer", "turn/start"]);
});

it("leaves to the next run what was not read when a turn ends badly", () => {
  const { dialogue, methods, startTurn, turn } = newDialogue();
  startTurn();
  dialogue.say("m1", "one");
  const facts = turn("completed", { status: "failed", error: { message: "it broke" } });
  expect(facts).toMatchObject([{ fact: "turn_ended", end: { fault: "other" } }, cancelled("m1")]);
  expect(methods().at(-1)).toBe("turn/steer");
});

it("leaves to the next run a message for which the program begins no turn", () => {
  const { dialogue, refuse, startTurn, turn } = newDialogue();
  startTurn();
  turn("completed", { status: "completed" });
  dialogue.say("m1", "one");
  expect(refuse("not now")).toEqual([cancelled("m1")]);
  expect(dialogue.isReady).toBe(true);
});

it.each([0, 1, 2])("ends the run when the program refuses step %i of its beginning", (step) => {
  const { reply, refuse } = newDialogue();
  if (step > 0) reply({});
  if (step > 1) reply({ thread: { id: "t" }, model: "m" });
  expect(refuse("model provider x not found")).toMatchObject([
    { fact: "turn_ended", end: { fault: "config", text: "model provider x not found" } },
  ]);
});

it("tells once that the thread to be resumed is gone", () => {
  const { reply, refuse } = newDialogue({ sessionId: "t" });
  reply({});
  expect(refuse("no rollout found for thread id t")).toMatchObject([
    { fact: "turn_ended", end: { fault: "lost_session" } },
  ]);
});

it("interrupts the turn that runs, and begins none after it", () => {
  const { dialogue, last, methods, startTurn, turn } = newDialogue();
  startTurn();
  expect(dialogue.interrupt()).toBe(true);
  expect(last()).toMatchObject({
    method: "turn/interrupt",
    params: { threadId: "t", turnId: "turn-1" },
  });
  dialogue.say("m1", "one");
  turn("completed", { status: "interrupted" });
  expect(methods().at(-1)).toBe("turn/interrupt");
});

it("cuts the turn that runs, and begins another one in the same thread with the next message", () => {
  const { dialogue, last, startTurn, turn } = newDialogue();
  expect(dialogue.cut()).toBe(false);
  startTurn();
  dialogue.say("m1", "one");
  expect(dialogue.cut()).toBe(true);
  expect(last()).toMatchObject({ method: "turn/interrupt", params: { turnId: "turn-1" } });
  // What the turn has not read begins the next one.
  turn("completed", { status: "interrupted" });
  expect(last()).toMatchObject({ method: "turn/start", params: { clientUserMessageId: "m1" } });
  turn("started");
  expect(dialogue.isReady).toBe(true);
  // An end that nobody asked for is the end of the run.
  dialogue.say("m2", "two");
  expect(turn("completed", { status: "interrupted" })).toContainEqual(cancelled("m2"));
});

it("begins no turn when it is stopped before, and interrupts one that was on its way", () => {
  const early = newDialogue();
  expect(early.dialogue.interrupt()).toBe(false);
  early.openThread();
  expect(early.methods()).not.toContain("turn/start");
  const late = newDialogue();
  late.openThread();
  expect(late.dialogue.interrupt()).toBe(false);
  late.turn("started");
  expect(late.last()).toMatchObject({ method: "turn/interrupt", params: { turnId: "turn-1" } });
});

it.each([
  ["edit", "decline"],
  ["full", "accept"],
] as const)("answers a wish for approval by the mode %s: %s", (mode, decision) => {
  const { hear, sent, startTurn } = newDialogue({ permissions: { mode } });
  startTurn();
  hear({ id: 0, method: "item/fileChange/requestApproval", params: { threadId: "t" } });
  expect(sent.at(-1)).toEqual({ id: 0, result: { decision } });
});
