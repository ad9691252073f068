/** Lists what loads the plugins that the settings name. Only the first is used. */
import type { LoadPlugins } from "../plugin.ts";

const LOADERS: readonly { kind: string; load(): Promise<LoadPlugins> }[] = [
  { kind: "config.yaml", load: async () => (await import("../parts/plugins/load.ts")).loadPlugins },
];

/** Loads no module of a tree without plugins. */
export const loadPlugins: LoadPlugins = async (settings, stateDir) => {
  if (settings.plugins.length === 0) return [];
  const load = await LOADERS[0]?.load();
  return (await load?.(settings, stateDir)) ?? [];
};
