/** What a coding agent is told at the start of a run. */
import fs from "node:fs";
import type { Assignment } from "../agent.ts";
import { writePacket } from "../exec-agent.ts";
import type { SessionDocument } from "./session-file.ts";

/** Its task; and what a session before this one did, when that is gone. */
export function packetOf(assignment: Assignment, { hand_off: handOff }: SessionDocument): string {
  const path = assignment.node?.packetFile ?? writePacket(assignment);
  const task = fs.readFileSync(path, "utf8");
  if (handOff === "") return task;
  return `${task}\n\n## What was done before\n\nAn earlier session worked on this task and is gone. It left this:\n\n${handOff}\n`;
}

/** For a session that knows its task: why it runs again. The task is not sent twice, which would be paid twice. */
export function resumePacketOf({ hand_off: handOff }: SessionDocument): string {
  const why = handOff === "" ? "" : `\n\nWhat is known of the last run:\n\n${handOff}`;
  return `Your last run of this task did not come to its end. Go on where you were; the task is as before. Look first at what is done already.${why}\n`;
}
