/** Services of the tick that do a slice of longer work: the two inboxes, and the cleaning of old files. */
import { SLICE_MS_MAX } from "../core/limits.ts";
import type { CommandInbox } from "./control/command-inbox.ts";
import { NEVER, type Service } from "./environment/service.ts";
import type { InboxScanner } from "./inbox/scanner.ts";
import type { Cleaner } from "./maintenance/cleaner.ts";

export function commandService(commands: CommandInbox): Service {
  return {
    work: () => commands.work(),
    // Never at once, so that acknowledgements and file events can be handled in between.
    nextMs: (nowMs) => nowMs + Math.max(1, commands.relookMs ?? NEVER),
  };
}

/** @param isOnePass the inbox is scanned only once */
export function scanService(scanner: InboxScanner, isOnePass: boolean): Service {
  return {
    work: ({ nowMs }) => scanner.work(nowMs + SLICE_MS_MAX),
    nextMs: (nowMs) => {
      const isPassOver = isOnePass && scanner.isComplete;
      return scanner.hasWork && !isPassOver ? nowMs : (scanner.nextLookMs() ?? NEVER);
    },
  };
}

/** @param mayBegin false while more urgent work is in progress */
export function cleanService(cleaner: Cleaner, mayBegin: () => boolean): Service {
  return {
    work: ({ nowMs }) => {
      if (mayBegin()) cleaner.work(nowMs);
    },
    nextMs: (nowMs) => (cleaner.hasWork ? nowMs : NEVER),
    stop: () => cleaner.close(),
  };
}
