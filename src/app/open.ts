/** A state tree as a library, together with the parts that it uses. */
import type { LibraryParts, Mailchute } from "../library/mailchute.ts";
import { openTree } from "../library/open.ts";
import { Mailbox } from "./mailbox.ts";

const PARTS: LibraryParts = {
  openMailbox: (dir, options) => Mailbox.open(dir, options),
  loadPool: async () => {
    const [{ Supervisor }, { WORKER_PARTS }] = await Promise.all([
      import("./supervisor.ts"),
      import("./worker-parts.ts"),
    ]);
    return { makeSupervisor: (options) => new Supervisor(options), worker: WORKER_PARTS };
  },
  openIdReaders: async (...of) => (await import("./id-readers.ts")).openIdReaders(...of),
};

/**
 * Opens a state tree, and makes it if it is missing. Nothing runs in it before a pool is started.
 * @param dir default: `MAILCHUTE_STATE`, or `state` in the working directory
 * @throws ErrMailboxDir when it cannot be used safely, or needs a newer program; ErrInvalidConfig
 */
export function open(dir: string = process.env["MAILCHUTE_STATE"] || "state"): Promise<Mailchute> {
  return openTree(dir, PARTS);
}
