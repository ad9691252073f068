/** Finds the present or last task of an agent in the scope of the state tree. Reads only. */
import { openMailbox } from "../../../cli/shell/options.ts";
import type { RunFinder } from "../../../cli/shell/run-finder.ts";
import { readAgent } from "../agents/agents.ts";
import { runsOfAgent } from "../agents/runs-of-agent.ts";
import { openOwn } from "../roots/open-own.ts";
import { parseAddress } from "../scope/scope.ts";

export const findRuns: RunFinder = async (ctx, named) => {
  const { loaded, trays, tree } = await openMailbox(ctx, true);
  const { agents } = loaded.settings;
  const { folder } = await openOwn(loaded.settings, tree.dir, ctx.env);
  const name = parseAddress(named.replace(/^@/, ""), folder.scope)?.name;
  if (name === undefined) return undefined;
  const record = readAgent(folder, name);
  if (record === undefined && !agents.some((one) => one.name.toLowerCase() === name))
    return undefined;
  const last = record?.task_id ?? record?.spawned?.task_id;
  return { running: runsOfAgent(trays, folder, agents, name), last };
};
