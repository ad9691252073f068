/**
 * Our side of the Agent Client Protocol with one program: it opens a session, sends prompts, and answers what the program asks. We offer
 * neither files nor terminals, so the program uses its own, in the folder of the run. It decides nothing about the run: that follows from
 * the facts.
 */
import type { Dialogue, Opening, RunStart } from "../../agents/stream/agent-program.ts";
import type { Fact } from "../../agents/stream/facts.ts";
import {
  isObject,
  type JsonMembers,
  listOf,
  membersAt,
  textOf,
} from "../../agents/stream/json-values.ts";
import { findProgram } from "../../host/find-program.ts";
import { readVersion } from "../../host/package.ts";
import { endTurn, faultOfError, isLost, messageOfError } from "./fault.ts";
import { answerPermission, explainUnasked } from "./permission.ts";
import { AcpReader, ASKS_PERMISSION, type Ask, REQUEST } from "./read-line.ts";

/** Version 2 is a draft (2026-11): a prompt is answered when it is accepted, and `state_update` says when the work is over. */
export const PROTOCOL = 1;
const METHOD_NOT_FOUND = -32601;
/** The mode in which programs ask before each change. Some begin in another, in which they or their model decide. */
const ASKING_MODE = "default";

/** `opening`: no prompt was sent yet. `stopping`: no prompt is sent any more. */
type TurnState = "opening" | "running" | "idle" | "stopping";

/** The first request. */
export function initializeLine(): string {
  const clientInfo = { name: "mailchute", title: "mailchute", version: readVersion() };
  const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false }, terminal: false };
  const params = { protocolVersion: PROTOCOL, clientCapabilities, clientInfo };
  return lineOf({ id: REQUEST.initialize, method: "initialize", params });
}

function lineOf(message: object): string {
  return `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;
}

function hasOtherMode(modes: JsonMembers): boolean {
  const offered = listOf(modes["availableModes"]).filter(isObject);
  return modes["currentModeId"] !== ASKING_MODE && offered.some(({ id }) => id === ASKING_MODE);
}

interface Message {
  uuid: string;
  text: string;
}

export class AcpDialogue implements Dialogue {
  /** The end of its input ends every agent that was tried, and a signal only some. */
  readonly endsAtEof = true;
  private readonly reader: AcpReader;
  private write: (text: string) => void = () => {};
  private opening: Opening | undefined;
  /** What the program can do, and how one logs in. */
  private abilities: JsonMembers = {};
  private logins: string[] = [];
  /** What one may choose for the session. */
  private options: JsonMembers[] = [];
  private sessionId = "";
  private state: TurnState = "opening";
  private isCut = false;
  /** It does not keep to its permissions. */
  private isUnfit = false;
  private prompts: number = REQUEST.prompt;
  /** The message of the open prompt. */
  private current: (Message & { isRead: boolean }) | undefined;
  /** Messages for the next prompts: the protocol takes none in the middle of a turn. */
  private waiting: Message[] = [];

  constructor(private readonly run: RunStart) {
    this.reader = new AcpReader(run.sessionId !== undefined);
  }

  get isReady(): boolean {
    return this.state === "running" || this.state === "idle";
  }

  begin(opening: Opening, write: (text: string) => void): void {
    this.write = write;
    this.opening = opening;
    write(initializeLine());
  }

  say(uuid: string, text: string): void {
    this.waiting.push({ uuid, text });
    this.passOn();
  }

  cut(): boolean {
    if (this.state !== "running") return false;
    this.isCut = true;
    this.cancel();
    return true;
  }

  interrupt(): boolean {
    const wasRunning = this.state === "running";
    this.state = "stopping";
    if (wasRunning) this.cancel();
    return wasRunning;
  }

  readonly read = (line: string): Fact[] => {
    const { facts: read, reply, ask, isAtWork, unasked } = this.reader.take(line);
    const facts = isAtWork === true ? [...this.noteRead(), ...read] : read;
    const breach = unasked && explainUnasked(unasked, this.run.settings.permissions);
    if (breach !== undefined) return [...facts, ...this.stopFor(breach)];
    if (ask !== undefined) return [...facts, ...this.answer(ask)];
    if (reply === undefined) return facts;
    return reply.id >= REQUEST.prompt
      ? this.endPrompt(facts)
      : [...facts, ...this.goOn(reply.id, reply.result, reply.error)];
  };

  /** The next step before the first prompt. */
  private goOn(id: number, result: JsonMembers, error: JsonMembers | undefined): Fact[] {
    if (error !== undefined) return this.refused(id, error);
    switch (id) {
      case REQUEST.initialize:
        return this.noteAgent(result);
      case REQUEST.authenticate:
        return this.open();
      case REQUEST.open:
        return this.noteOpen(result);
      case REQUEST.mode:
        return this.chooseModel();
      default:
        this.prompt(this.packet());
        return [];
    }
  }

  private noteAgent(result: JsonMembers): Fact[] {
    const { auth_method: method } = this.run.settings;
    this.abilities = membersAt(result, "agentCapabilities");
    this.logins = listOf(result["authMethods"])
      .filter(isObject)
      .map(({ id }) => textOf(id));
    const version = result["protocolVersion"];
    if (version !== PROTOCOL)
      return [
        endTurn(
          "config",
          `it speaks version ${String(version)} of the protocol, and mailchute version ${PROTOCOL}`,
        ),
      ];
    if (method === undefined) return this.open();
    this.request(REQUEST.authenticate, "authenticate", { methodId: method });
    return [];
  }

  /** Resumes the session, or begins one. A session that is loaded repeats its history, so to resume it is better. */
  private open(): Fact[] {
    const { abilities } = this;
    const { cwd, sessionId } = this.run;
    const place = { cwd, mcpServers: this.servers() };
    if (sessionId === undefined) {
      this.request(REQUEST.open, "session/new", place);
      return [];
    }
    const canResume = isObject(membersAt(abilities, "sessionCapabilities")["resume"]);
    if (!canResume && abilities["loadSession"] !== true)
      return [endTurn("lost_session", "it cannot resume a session")];
    this.request(REQUEST.open, canResume ? "session/resume" : "session/load", {
      sessionId,
      ...place,
    });
    return [];
  }

  /** The protocol wants an absolute path. A program that is not found keeps its name, so that the agent reports it. */
  private servers(): object[] {
    const { env, mcp = {} } = this.run.settings;
    const path = env?.["PATH"] ?? process.env["PATH"];
    return Object.entries(mcp).map(
      ([
        name,
        {
          command: [program = "", ...args],
        },
      ]) => ({
        name,
        command: findProgram(program, path, this.run.cwd) ?? program,
        args,
        env: [],
      }),
    );
  }

  private noteOpen(result: JsonMembers): Fact[] {
    const { sessionId, settings } = this.run;
    this.sessionId = sessionId ?? textOf(result["sessionId"]);
    const facts: Fact[] = sessionId === undefined ? [] : [{ fact: "session", id: sessionId }];
    if (this.sessionId === "") return [endTurn("other", "it has opened a session without an id")];
    this.options = listOf(result["configOptions"]).filter(isObject);
    if (settings.permissions?.mode === "full" || !hasOtherMode(membersAt(result, "modes")))
      return [...facts, ...this.chooseModel()];
    const mode = { sessionId: this.sessionId, modeId: ASKING_MODE };
    this.request(REQUEST.mode, "session/set_mode", mode);
    return facts;
  }

  private chooseModel(): Fact[] {
    const { model } = this.run.settings;
    if (model === undefined) {
      this.prompt(this.packet());
      return [];
    }
    const option = this.options.find(({ category, id }) => category === "model" || id === "model");
    if (option === undefined)
      return [
        endTurn(
          "config",
          `model ${model}: it offers no choice of a model; set it in the settings of the program`,
        ),
      ];
    this.request(REQUEST.model, "session/set_config_option", {
      sessionId: this.sessionId,
      configId: textOf(option["id"]),
      value: model,
    });
    return [];
  }

  private refused(id: number, error: JsonMembers): Fact[] {
    const message = messageOfError(error);
    if (id === REQUEST.open && this.run.sessionId !== undefined && isLost(error))
      return [endTurn("lost_session", message)];
    if (id === REQUEST.model) return [endTurn("config", `model: ${message}`)];
    if (id === REQUEST.mode) return [endTurn("config", `mode ${ASKING_MODE}: ${message}`)];
    const fault = faultOfError(error);
    const ways = this.logins.length === 0 ? "" : `; auth_method may be ${this.logins.join(", ")}`;
    return [endTurn(fault, fault === "auth" ? `${message}${ways}` : message)];
  }

  private packet(): Message {
    const { uuid = "", packet = "" } = this.opening ?? {};
    return { uuid, text: packet };
  }

  private prompt(message: Message): void {
    if (this.state === "stopping") return;
    this.state = "running";
    this.current = { ...message, isRead: false };
    const prompt = [{ type: "text", text: message.text }];
    this.request(this.prompts++, "session/prompt", { sessionId: this.sessionId, prompt });
  }

  /** The model works, so it has read the message. */
  private noteRead(): Fact[] {
    const { current } = this;
    if (current === undefined || current.isRead) return [];
    current.isRead = true;
    return [{ fact: "message", uuid: current.uuid, state: "read" }];
  }

  /** Its next run would do the same, so the fault is that of the settings. */
  private stopFor(breach: string): Fact[] {
    this.interrupt();
    this.isUnfit = true;
    return [endTurn("config", breach)];
  }

  private endPrompt(all: readonly Fact[]): Fact[] {
    // That its turn was cancelled then is no news.
    const facts = this.isUnfit ? all.filter(({ fact }) => fact !== "turn_ended") : all;
    const uuid = this.current?.uuid ?? "";
    this.current = undefined;
    const isOurs = this.isCut;
    this.isCut = false;
    if (this.state === "running") this.state = "idle";
    const ended = facts.map((fact) =>
      fact.fact === "turn_ended" ? { ...fact, end: { ...fact.end, answers: [uuid] } } : fact,
    );
    const isGood = facts.some((one) => one.fact === "turn_ended" && one.end.fault === undefined);
    if (isGood || isOurs) {
      this.passOn();
      return ended;
    }
    // A bad end of a turn ends the run. The other messages are for the next run.
    const unread = this.waiting.splice(0);
    return [
      ...ended,
      ...unread.map((one): Fact => ({ fact: "message", uuid: one.uuid, state: "cancelled" })),
    ];
  }

  private passOn(): void {
    if (this.state !== "idle") return;
    const message = this.waiting.shift();
    if (message !== undefined) this.prompt(message);
  }

  private answer(ask: Ask): Fact[] {
    const { id, method, params } = ask;
    if (method !== ASKS_PERMISSION) {
      const error = { code: METHOD_NOT_FOUND, message: `mailchute does not serve ${method}` };
      this.send({ id, error });
      return [{ fact: "notice", text: `it asked for ${method}, which is not served` }];
    }
    // The protocol wants this answer after a cancel.
    if (this.state === "stopping" || this.isCut) {
      this.send({ id, result: { outcome: { outcome: "cancelled" } } });
      return [];
    }
    const { permissions } = this.run.settings;
    const { outcome, denied } = answerPermission(params, permissions, this.run.cwd);
    this.send({ id, result: { outcome } });
    if (denied !== undefined) return [{ fact: "tool_denied", name: denied }];
    return [{ fact: "writing" }, ...this.reader.begin(ask)];
  }

  private cancel(): void {
    this.send({ method: "session/cancel", params: { sessionId: this.sessionId } });
  }

  private request(id: number, method: string, params: object): void {
    this.send({ id, method, params });
  }

  private send(message: object): void {
    this.write(lineOf(message));
  }
}
