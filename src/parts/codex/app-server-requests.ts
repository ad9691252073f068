/** Our requests to `codex app-server`, as lines of its protocol. Pure. Names: `codex app-server generate-json-schema`. */
import type { Permissions } from "../../core/settings.ts";
import { sandboxOf } from "./command-line.ts";

export interface AppServerRequest {
  method: string;
  params: object;
}

export function requestLine(id: number, { method, params }: AppServerRequest): string {
  return JSON.stringify({ id, method, params });
}

/** Sent when the program has answered `initialize`. */
export const INITIALIZED_LINE = JSON.stringify({ method: "initialized" });

/** The answer to a request of the program. No person can be asked, so it denies what the mode of the agent does not allow. */
export function answerLine(
  { id, method }: { id: number | string; method: string },
  permissions: Permissions | undefined,
): string {
  const isApproval =
    method === "item/commandExecution/requestApproval" ||
    method === "item/fileChange/requestApproval";
  const decision = permissions?.mode === "full" ? "accept" : "decline";
  return JSON.stringify(
    isApproval
      ? { id, result: { decision } }
      : { id, error: { code: -32601, message: "no person is there to answer" } },
  );
}

export function initialize(version: string): AppServerRequest {
  const clientInfo = { name: "mailchute", title: "mailchute", version };
  return { method: "initialize", params: { clientInfo, capabilities: null } };
}

export interface ThreadPlan {
  cwd: string;
  model: string | undefined;
  permissions: Permissions | undefined;
}

export function startThread(plan: ThreadPlan): AppServerRequest {
  return { method: "thread/start", params: threadParams(plan) };
}

/** The program remembers neither sandbox nor approvals of a thread, so they are given again. */
export function resumeThread(threadId: string, plan: ThreadPlan): AppServerRequest {
  const params = { threadId, ...threadParams(plan), excludeTurns: true };
  return { method: "thread/resume", params };
}

function threadParams({ cwd, model, permissions }: ThreadPlan): object {
  const sandbox = sandboxOf(permissions);
  return { cwd, sandbox, approvalPolicy: "never", ...(model === undefined ? {} : { model }) };
}

/** @param uuid the program repeats it when the model has read the message */
export function startTurn(threadId: string, uuid: string, text: string): AppServerRequest {
  const params = { threadId, clientUserMessageId: uuid, input: inputOf(text) };
  return { method: "turn/start", params };
}

/**
 * Sends a message into the middle of a turn. The program reads a repeat again. When the turn ends or is interrupted, it forgets
 * messages that it has not read. `listItems` tells whether a thread has read a message.
 */
export function steerTurn(
  threadId: string,
  turnId: string,
  uuid: string,
  text: string,
): AppServerRequest {
  const params = {
    threadId,
    expectedTurnId: turnId,
    clientUserMessageId: uuid,
    input: inputOf(text),
  };
  return { method: "turn/steer", params };
}

export function interruptTurn(threadId: string, turnId: string): AppServerRequest {
  return { method: "turn/interrupt", params: { threadId, turnId } };
}

/** The items of a thread, the newest first. */
export function listItems(threadId: string, cursor?: string): AppServerRequest {
  const params = {
    threadId,
    limit: 100,
    sortDirection: "desc",
    ...(cursor === undefined ? {} : { cursor }),
  };
  return { method: "thread/items/list", params };
}

function inputOf(text: string): object[] {
  return [{ type: "text", text, text_elements: [] }];
}
