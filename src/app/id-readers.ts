/** Lists the parts that know ids besides those in the trays, for commands that show them. */
import { planReader } from "../parts/plan/plan-view.ts";
import { IdReaders, type MakeIdReader } from "../view/id-reader.ts";

const ID_READERS: readonly MakeIdReader[] = [planReader];

/** See `MakeIdReader`. */
export function openIdReaders(...of: Parameters<MakeIdReader>): IdReaders {
  return new IdReaders(ID_READERS.map((make) => make(...of)));
}
