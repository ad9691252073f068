/**
 * `format.json` of a state tree says which versions of mailchute can use it. An older version does not know newer file names, and
 * would think that their ids are free; or it does not know newer fields of tasks. So a version that is too old stops at the start.
 */

import { ErrMailboxDir } from "../../core/errors.ts";
import { isCount, type Of, shape } from "../../core/shape.ts";
import { Documents } from "../../host/document-store.ts";

const format = shape({
  /** Version of the newest program that changed the tree. */
  version: isCount,
  /** A program of a lower version must not change the tree. */
  min_reader: isCount,
});
const formats = (dir: string): Documents<Of<typeof format>> =>
  new Documents(dir, "", format, { isDurable: true });
const NAME = "format";

/**
 * 1: `~hold` in `processing/`.
 * 2: `dependencies`, `depends_on`, `retry_policy` and words for priorities in tasks. An older version would run such tasks too early.
 */
const OWN = { version: 2, min_reader: 2 };

/** @param dir the state tree @throws ErrMailboxDir when the tree needs a newer program */
export function checkFormat(dir: string): void {
  const { min_reader: needed } = readFormat(dir);
  if (needed <= OWN.version) return;
  throw new ErrMailboxDir(
    `${dir} needs a newer mailchute: its format is for programs of version ${needed} and later, this one has ${OWN.version}`,
    {
      path: formats(dir).path(NAME),
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
  formats(dir).replace(NAME, format);
}

/** Version 0 when the file is missing, as in trees of the first versions, or broken. */
const readFormat = (dir: string): Of<typeof format> =>
  formats(dir).read(NAME) ?? { version: 0, min_reader: 0 };
