/**
 * Answers for very many ids whether their files exist. It uses listings where these are as good as single looks: of
 * `processing/`, which is short, and of `outbox/` while it does not change. Reads only.
 */
import { resultName } from "../../core/names.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { SettledNames } from "../../mailbox/find/settled-names.ts";
import type { IdLooks } from "./taken-ids.ts";

/** A larger `outbox/` is not listed (bytes of the directory itself; some thousand names): that takes about 5 ms. */
const OUTBOX_BYTES_MAX = 128 * 1024;

export class ListedIds implements IdLooks {
  private readonly settled: SettledNames;
  private claims: ReadonlySet<string> = new Set();

  constructor(private readonly trays: Trays) {
    this.settled = new SettledNames(trays, OUTBOX_BYTES_MAX);
  }

  /** Call it before each slice of questions. @throws a system error */
  refresh(): void {
    const { storage, processing } = this.trays;
    this.claims = new Set(storage.list(processing).filter((name) => !name.includes("@")));
    this.settled.refresh(true);
  }

  /** Notes a file that has just been moved or made. */
  noteNew(path: string): void {
    this.settled.noteNew(path);
  }

  hasPlainClaim(id: string): boolean {
    return this.claims.has(`${id}.json`);
  }

  hasResult(id: string): boolean {
    return this.settled.has("outbox", resultName(id));
  }
}
