/** What knows ids beside the trays, for those who look. */
import { planReader } from "../parts/plan/plan-view.ts";
import { IdReaders, type MakeIdReader } from "../view/id-reader.ts";

const ID_READERS: readonly MakeIdReader[] = [planReader];

/** See `MakeIdReader`. */
export function openIdReaders(...of: Parameters<MakeIdReader>): IdReaders {
  return new IdReaders(ID_READERS.map((make) => make(...of)));
}
