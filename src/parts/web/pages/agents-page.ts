/** The page of the agents: the work and the session of each, what it has used, the quotas of its accounts, and its mail. */
import { join } from "node:path";
import { accountsDir, GateFile } from "../../../agents/accounts/gate-file.ts";
import { pausedAgents } from "../../../agents/breaker/breaker-file.ts";
import { pauseText } from "../../../agents/breaker/breaker-rules.ts";
import { sessionOfRun } from "../../../agents/stream/session-file.ts";
import type { AgentSettings } from "../../../core/settings.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { statOf } from "../../../host/regular-file.ts";
import { countText, duration } from "../../../text/render.ts";
import type { Overview, RunningRow } from "../../../view/overview.ts";
import {
  type Block,
  type Cell,
  linkToTask,
  type Page,
  say,
  seconds,
  shown,
  table,
  timeOf,
  usd,
} from "../page.ts";
import type { VerbReader } from "../verb-reader.ts";
import { costTable, readCosts } from "./costs-page.ts";
import { type MailAgent, readMail, threadBlocks } from "./mail-threads.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const MINUTE_MS = 60 * 1000;
/** An agent that is silent for longer may be stuck. */
const SILENT_MS = 5 * MINUTE_MS;
const MAIL_AGAIN_MS = 1000;

export interface AgentSources {
  tree: StateTree;
  agents: readonly AgentSettings[];
  overview: Overview;
  verbs: VerbReader;
  /** The open thread of mail. */
  thread: string | null;
}

export async function agentsPage(sources: AgentSources): Promise<Page> {
  const { tree, overview, thread } = sources;
  const paused = pausedAgents(tree.dir).map((one) => say(shown(pauseText(one)), true));
  return {
    title: "Agents",
    command:
      thread === null
        ? "mailchute agents; mailchute cost --since 24h"
        : `mailchute messages --thread ${shown(thread)}`,
    health: { state: overview.health.state, text: shown(overview.health.text) },
    blocks: [
      ...paused,
      workBlock(sources),
      await costBlock(sources),
      quotaBlock(sources),
      ...(await mailBlocks(sources)),
    ],
  };
}

/** An agent with several tasks has several rows. */
function workBlock({ tree, agents, overview }: AgentSources): Block {
  const rows = agents.flatMap((agent): Cell[][] => {
    const tasks = overview.running.filter((one) => one.agent === agent.name);
    const name = shown(agent.name);
    if (tasks.length === 0) return [[name, agent.kind, "nothing", "", "", "", "", ""]];
    return tasks.map((row) => [
      name,
      agent.kind,
      linkToTask(row.id, row.title),
      row.age_ms === null ? "–" : seconds(row.age_ms),
      silenceOf(row, tree),
      usd(row.cost_usd_micro),
      shown((row.run && sessionOfRun(join(tree.runs, row.run))?.session_id) ?? "–"),
      shown(row.last_line ?? ""),
    ]);
  });
  const names = ["agent", "kind", "works on", "for", "silent for", "cost", "session", "last word"];
  return table("What they do", names, rows, "no agents");
}

/** Its stream has not grown for so long, or its process is dead. */
function silenceOf({ run, is_alive: isAlive }: RunningRow, { runs }: StateTree): Cell {
  if (!isAlive) return { look: "bad", word: "dead" };
  const stats = run === null ? undefined : statOf(join(runs, run, "events.jsonl"));
  const ms = Math.floor((Date.now() - (stats?.mtimeMs ?? Date.now())) / MINUTE_MS) * MINUTE_MS;
  if (ms <= 0) return "–";
  return ms < SILENT_MS ? duration(ms) : { look: "warn", word: duration(ms) };
}

async function costBlock({ verbs }: AgentSources): Promise<Block> {
  const { rows } = await readCosts(verbs, "agent", DAY_MS);
  const cells = rows.map((sum) => [sum, shown(sum.key)] as const);
  return costTable("What they used in 24 hours", "agent", cells);
}

/** The quota windows of each account, as far as its service has told them to runs. */
function quotaBlock({ agents, verbs }: AgentSources): Block {
  const names = new Set(
    agents.flatMap(({ account = "default", accounts }) => accounts ?? [account]),
  );
  const rows = [...names].flatMap((name): Cell[][] => {
    const gate = new GateFile(accountsDir(verbs.env), name).read();
    const windows = Object.entries(gate.windows ?? {});
    const rows = windows.map(([window, { used_pct: pct, resets_at_ms: resetsMs }]): Cell[] => [
      shown(name),
      shown(window),
      `${pct} %`,
      timeOf(resetsMs),
      "",
    ]);
    if (gate.status === "closed") {
      const window = shown(gate.window ?? "all");
      rows.unshift([shown(name), window, "used up", timeOf(gate.until_ms), shown(gate.reason)]);
    }
    return rows.length > 0 ? rows : [[shown(name), "–", "not known", "", ""]];
  });
  const columns = ["account", "window", "used", "resets", "why"];
  return table("Quotas of their accounts", columns, rows, "no accounts");
}

/** Empty where there is no scope of mail, as outside a repository. */
async function mailBlocks({ verbs, thread }: AgentSources): Promise<Block[]> {
  try {
    const found = await verbs.read({ verb: "agents", againMs: MAIL_AGAIN_MS });
    const agents = (found?.["agents"] ?? []) as MailAgent[];
    const mail = await readMail(verbs);
    return [...readersBlock(agents), ...threadBlocks(mail, agents, thread)];
  } catch {
    return [];
  }
}

function readersBlock(agents: readonly MailAgent[]): Block[] {
  if (agents.length === 0) return [];
  const rows = agents.map((one) => [
    shown(one.name),
    shown(one.type),
    shown(one.status),
    countText(one.unread),
    timeOf(one.last_woken_at === null ? null : one.last_woken_at * 1000),
    one.task_id ? linkToTask(one.task_id) : shown(one.task),
  ]);
  return [table("Mail", ["name", "kind", "status", "unread", "last woken", "task"], rows)];
}
