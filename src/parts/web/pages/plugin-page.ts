/** A page of a plugin. Its texts are shown as texts, like those of our pages, and never as markup. */
import { setTimeout as pause } from "node:timers/promises";
import { ErrPlugin, messageOf } from "../../../core/errors.ts";
import { isObject } from "../../../core/json-object.ts";
import type { LoadedPlugin } from "../../../plugin.ts";
import { type Block, type Page, shown } from "../page.ts";

/** How long a page may take (ms). A few that never end would keep all other pages from being made. */
const RENDER_MS_MAX = 5000;
/** The blocks that it may have, with what may be left out. */
const BLOCKS: Readonly<Record<string, object>> = {
  heading: { text: "" },
  text: { text: "", is_bad: false },
  facts: { facts: [] },
  table: { title: "", columns: [], rows: [], none: "" },
};

/** @throws ErrPlugin */
export async function pluginPage(
  plugins: readonly LoadedPlugin[],
  id: string,
  query: URLSearchParams,
  stateDir: string,
): Promise<Page> {
  const { plugin, settings } = plugins.find((one) => one.plugin.pages?.[id] !== undefined) ?? {};
  const page = plugin?.pages?.[id];
  const place = { stateDir, query: Object.fromEntries(query), nowMs: Date.now() };
  const ended = new AbortController();
  const late = pause(RENDER_MS_MAX, undefined, { signal: ended.signal }).then(() => {
    throw new Error(`it took longer than ${RENDER_MS_MAX} ms`);
  });
  late.catch(() => {});
  try {
    const made = await Promise.race([page?.render(place, settings ?? {}), late]);
    return {
      title: shown(page?.title),
      command: "mailchute status",
      blocks: blocksOf(made),
    };
  } catch (error) {
    const message = `ErrPlugin: the page ${id} of a plugin cannot be made: ${messageOf(error)}`;
    throw new ErrPlugin(message, { hint: "mend the plugin" });
  } finally {
    ended.abort();
  }
}

function blocksOf(made: unknown): Block[] {
  if (!Array.isArray(made)) throw new TypeError("render() must return a list of blocks");
  const plain = JSON.stringify(made, (_key, value) =>
    typeof value === "string" ? shown(value) : value,
  );
  return (JSON.parse(plain) as unknown[]).map((block) => {
    const kind = isObject(block) ? String(block["kind"]) : "";
    if (!isObject(block) || !Object.hasOwn(BLOCKS, kind))
      throw new TypeError(`a block has a kind of ${Object.keys(BLOCKS).join(", ")}`);
    return { ...BLOCKS[kind], ...block } as unknown as Block;
  });
}
