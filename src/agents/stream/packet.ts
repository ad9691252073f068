/** Makes the packet that a coding agent gets at the start of a run. */

import { readRegularText } from "../../host/regular-file.ts";
import type { Assignment } from "../agent.ts";
import { writePacket } from "../exec-agent.ts";
import { lastCheckText } from "../last-check-text.ts";
import type { SessionDocument } from "./session-file.ts";

/** The largest size of the news and the messages together (bytes). A message of a person may be longer. */
const NEWS_BYTES_MAX = 6 * 1024;

/**
 * The first input of the program.
 * @param isTold the session is proven to know the task, so the task is not sent again
 * @param messages messages since the last run; "" when there are none
 */
export function firstWords(
  assignment: Assignment,
  session: SessionDocument,
  isTold: boolean,
  messages: string,
): string {
  const words = isTold ? resumePacketOf(assignment, session) : packetOf(assignment, session);
  const { briefing } = assignment;
  const news = briefing?.news(Math.max(0, NEWS_BYTES_MAX - Buffer.byteLength(messages))) ?? "";
  const parts = [
    words,
    briefing === undefined ? "" : `## Your colleagues\n\n${briefing.standing()}\n`,
    news === "" ? "" : `## What is new\n\n${news}\n`,
    messages === "" ? "" : `## Messages for you\n\n${messages}\n`,
  ];
  return parts.filter((part) => part !== "").join("\n\n");
}

/** The task, and what was done on it before. */
function packetOf(
  assignment: Assignment,
  { continues, hand_off, session_id }: SessionDocument,
): string {
  const path = assignment.node?.packetFile ?? writePacket(assignment);
  const task = readRegularText(path);
  const before = `${task}\n\n## What was done before\n\n`;
  if (session_id === null)
    return hand_off === ""
      ? task
      : `${before}An earlier session worked on this task and is gone. It left this:\n\n${hand_off}\n`;
  // The session knows another task, and that one has ended.
  if (continues !== undefined) return task;
  return `${before}Your last run of this task did not come to its end. Look first at what is done already.\n\n${hand_off}\n`;
}

/** For a session that knows its task: says why it runs again. It does not repeat the task, because that would cost twice. */
function resumePacketOf(
  assignment: Assignment,
  { hand_off: handOff, has_news: hasNews }: SessionDocument,
): string {
  if (hasNews === true)
    return "You had done your work on this task. A message for you has come since: take it into account, and end the task again.\n";
  const check = lastCheckText(assignment);
  if (check !== "") return `You had ended this task.\n\n${check}`;
  const why = handOff === "" ? "" : `\n\nWhat is known of the last run:\n\n${handOff}`;
  return `Your last run of this task did not come to its end. Go on where you were; the task is as before. Look first at what is done already.${why}\n`;
}
