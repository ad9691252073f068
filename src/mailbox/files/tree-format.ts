/**
 * `format.json` of a state tree says which versions of mailchute can use it. An older version does not know newer file names, and
 * would think that their ids are free; or it does not know newer fields of tasks. So a version that is too old stops at the start.
 */
import { join } from "node:path";
import { ErrMailboxDir } from "../../core/errors.ts";
import { readDocument, replaceDocument } from "../../host/documents.ts";

interface FormatDocument {
  /** Version of the newest program that changed the tree. */
  version: number;
  /** A program of a lower version must not change the tree. */
  min_reader: number;
}

/**
 * 1: `~hold` in `processing/`.
 * 2: `dependencies`, `depends_on`, `retry_policy` and words for priorities in tasks. An older version would run such tasks too early.
 */
const OWN: FormatDocument = { version: 2, min_reader: 2 };

/** @param dir the state tree @throws ErrMailboxDir when the tree needs a newer program */
export function checkFormat(dir: string): void {
  const { min_reader: needed } = readFormat(dir);
  if (needed <= OWN.version) return;
  throw new ErrMailboxDir(
    `${dir} needs a newer mailchute: its format is for programs of version ${needed} and later, this one has ${OWN.version}`,
    {
      path: pathOf(dir),
      phase: "open",
      hint: "use the mailchute that ran it last, or have that one finish the work first (mailchute run --drain) and use a new tree",
    },
  );
}

/** Notes that the tree may now hold everything that this version writes. @throws a system error */
export function noteFormat(dir: string): void {
  const { version, min_reader: needed } = readFormat(dir);
  if (version >= OWN.version && needed >= OWN.min_reader) return;
  const format = {
    version: Math.max(version, OWN.version),
    min_reader: Math.max(needed, OWN.min_reader),
  };
  replaceDocument(pathOf(dir), format, { isDurable: true });
}

/** Version 0 when the file is missing, as in trees of the first versions, or broken. */
function readFormat(dir: string): FormatDocument {
  const found = readDocument<FormatDocument>(pathOf(dir));
  const isGood = Number.isInteger(found?.version) && Number.isInteger(found?.min_reader);
  return found !== undefined && isGood ? found : { version: 0, min_reader: 0 };
}

function pathOf(dir: string): string {
  return join(dir, "format.json");
}
