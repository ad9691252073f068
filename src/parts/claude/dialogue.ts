/** Talks to `claude -p --input-format stream-json`: sends messages and interrupts as frames, and waits for no answer. */
import type { Dialogue } from "../../agents/stream/agent-program.ts";
import { interruptFrame, userFrame } from "./command-line.ts";
import { newClaudeReader } from "./read-line.ts";

export function newClaudeDialogue(): Dialogue {
  let send: (text: string) => void = () => {};
  let cuts = 0;
  return {
    read: newClaudeReader(),
    isReady: true,
    begin({ uuid, packet }, write) {
      send = write;
      send(userFrame(uuid, packet));
    },
    say: (uuid, text) => send(userFrame(uuid, text, "next")),
    interrupt: () => false,
    cut() {
      send(interruptFrame(`cut-${++cuts}`));
      return true;
    },
  };
}
