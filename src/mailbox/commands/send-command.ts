/** Sends a command to the supervisor through the control mailbox, and waits for its acknowledgement on request. */
import { setTimeout as pause } from "node:timers/promises";
import type { SupervisorDocument } from "../../core/documents.ts";
import { ErrSupervisorGone, MailchuteError } from "../../core/errors.ts";
import { supervisorOf } from "../../core/saved-documents.ts";
import { stateTree } from "../../core/state-tree.ts";
import { loadDocument } from "../../host/documents.ts";
import { judgeIn } from "../../host/tree-id.ts";
import { openTrays, type Trays } from "../files/trays.ts";
import { enqueueCommand, readAcknowledgement } from "./command-queue.ts";

export interface SentCommand {
  id: string;
  command: string;
  args: Record<string, unknown>;
}

/**
 * The control mailbox of a state tree; missing trays are created. It is always durable: commands are rare, and the person who gets
 * an id must be able to rely on it.
 */
export function openControl(stateDir: string): Trays {
  return openTrays(stateTree(stateDir).control, { durability: "power" });
}

/** @throws ErrInvalidCommand */
export async function sendCommand(
  stateDir: string,
  command: string,
  args: Record<string, unknown>,
): Promise<SentCommand> {
  const { id } = await enqueueCommand(openControl(stateDir), { command, args });
  return { id, command, args };
}

/** The live supervisor of a state tree, or undefined. @throws a system error when its document cannot be read */
export function findSupervisor(stateDir: string): SupervisorDocument | undefined {
  const document = loadDocument(stateTree(stateDir).supervisor, supervisorOf);
  if (document === undefined || document.status === "stopped") return undefined;
  return judgeIn(stateDir, document) === "dead" ? undefined : document;
}

/**
 * Waits for the acknowledgement of a command. By then the command has taken effect.
 * @throws ErrSupervisorGone when no supervisor runs that could take it; the supervisor's own error when it refused; the reason of
 *   `signal`
 */
export async function awaitAcknowledgement(
  stateDir: string,
  id: string,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<Record<string, unknown> | undefined> {
  const control = openControl(stateDir);
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    signal?.throwIfAborted();
    const record = readAcknowledgement(control, id);
    if (record !== undefined) {
      if (record["status"] === "completed")
        return (record["result"] ?? {}) as Record<string, unknown>;
      throw new MailchuteError(
        textOf(record["code"], "ErrInvalidCommand"),
        textOf(record["error"], "the command failed"),
        { id },
      );
    }
    if (findSupervisor(stateDir) === undefined) {
      throw new ErrSupervisorGone("no supervisor runs here; the command waits for the next one", {
        path: stateDir,
        id,
        hint: "start one with `mailchute run`",
      });
    }
    if (performance.now() > deadline) return undefined;
    await pause(10);
  }
}

function textOf(value: unknown, otherwise: string): string {
  return typeof value === "string" && value !== "" ? value : otherwise;
}
