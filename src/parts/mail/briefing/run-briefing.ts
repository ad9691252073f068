/** Briefs one run of an agent: its standing instructions, and the news if it was woken or is the orchestrator. */
import type { Briefing, BriefingNote } from "../../../agents/briefing.ts";
import { isoTime } from "../../../core/iso-time.ts";
import type { MakeBriefing } from "../../../worker/runner.ts";
import {
  type AgentChange,
  type AgentRecord,
  changeAgent,
  listAgents,
  livesElsewhere,
  readAgent,
} from "../agents/agents.ts";
import { nameOfRun } from "../agents/name-of-run.ts";
import { openOwn } from "../roots/open-own.ts";
import { formatAddress, type Scope } from "../scope/scope.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { readWakes, type WakeRecord } from "../store/wake-log.ts";
import { newsText, type TaskGroup } from "./news.ts";
import { standingText } from "./standing.ts";
import { taskGroups } from "./task-groups.ts";

interface News {
  wake: WakeRecord | undefined;
  groups: readonly TaskGroup[];
  since: string | null;
}

/** @throws a system error */
export const briefRun: MakeBriefing = async ({ tree }, { assignment }) => {
  const { settings, task } = assignment;
  const { folder } = await openOwn(settings, tree.dir, process.env);
  const run = nameOfRun(folder, task, settings);
  if ("fault" in run) return undefined;
  const address = formatAddress({ ...folder.scope, name: run.name });
  const wakes = readWakes(folder, run.name);
  const last = wakes.findLast((one) => one.task === task.id);
  const isToldNews = last?.is_wake === true || address === folder.orchestrator;
  const news = isToldNews ? await newsOf(tree, folder, task.id, wakes) : undefined;
  return new RunBriefing(folder, run.name, tree.dir, news);
};

/** Undefined when the tasks cannot be read: then the run starts without news. */
async function newsOf(
  tree: Parameters<MakeBriefing>[0]["tree"],
  folder: MailFolder,
  ownId: string,
  wakes: readonly WakeRecord[],
): Promise<News | undefined> {
  const wake = wakes.findLast((one) => one.task === ownId && one.is_wake);
  const before = wakes.findLast(({ task }) => task !== ownId);
  const sinceMs = (before?.at ?? 0) * 1000;
  try {
    const groups = await taskGroups(tree, folder, { ownId, sinceMs });
    return { wake, groups, since: before === undefined ? null : isoTime(sinceMs) };
  } catch {
    return undefined;
  }
}

class RunBriefing implements Briefing {
  private writing: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly folder: MailFolder,
    private readonly name: string,
    private readonly stateDir: string,
    private readonly told: News | undefined,
  ) {}

  standing(): string {
    const { folder, name } = this;
    return standingText({ ...folder.scope, name }, this.colleagues(), folder.orchestrator);
  }

  /** Empty when the agents cannot be read: the run goes on without them. */
  private colleagues(): AgentRecord[] {
    try {
      return listAgents(this.folder);
    } catch {
      return [];
    }
  }

  news(bytesMax: number): string {
    if (this.told === undefined) return "";
    const { groups, since, wake } = this.told;
    return newsText(wake, groups, since, bytesMax);
  }

  get scope(): Scope {
    return this.folder.scope;
  }

  note(what: BriefingNote): void {
    if (what === "briefed") this.change({ needs_briefing: false });
    else if (what === "compacted")
      this.change({ compacted_at: Math.floor(Date.now() / 1000), needs_briefing: true });
    else this.change(what);
  }

  async flush(): Promise<void> {
    await this.writing;
  }

  /** Writes changes one after the other, and only new values. A full disk does not stop the run: the next run is briefed again anyway. */
  private change(change: AgentChange): void {
    const write = async (): Promise<void> => {
      const { folder, name } = this;
      const before = readAgent(folder, name);
      const isNew = Object.entries(change).some(
        ([key, value]) => before?.[key as keyof AgentChange] !== value,
      );
      // The record of another tree's agent describes the runs of that tree.
      if (before === undefined || livesElsewhere(folder, before, this.stateDir)) return;
      if (isNew) await changeAgent(folder, name, change, Date.now());
    };
    this.writing = this.writing.then(write).catch(() => {});
  }
}
