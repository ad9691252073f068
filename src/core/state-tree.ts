/** The paths of all files and folders of a state tree. Pure. */
import { join } from "node:path";

export interface StateTree {
  dir: string;
  roadmap: string;
  config: string;
  mailbox: string;
  control: string;
  leases: string;
  events: string;
  metrics: string;
  alerts: string;
  runs: string;
  /** Sessions of coding agents that later runs continue. */
  sessions: string;
  /** What checks said on the base of the work: see `worker/base-check`. */
  bases: string;
  /** Logs of what coding agents said: `<agent>.jsonl`. */
  logs: string;
  evidence: string;
  kv: string;
  workers: string;
  /** What rates still allow: see `host/rate-bucket`. */
  limits: string;
  /** Tasks of other machines that this one runs: `<id>.json` until the other one has the result. */
  jobs: string;
  /** Tasks of this tree that other machines have. */
  remoteRuns: string;
  controlState: string;
  supervisor: string;
}

/** How deep the directory of a run lies in the tree: `runs/<day>/<run>`. */
export const RUN_DIR_DEPTH = 3;

/** The folder in which a run drops files for mailchute: `MAILCHUTE_DROP`. */
export function dropDirOf({ dir }: Pick<StateTree, "dir">, id: string, lease: string): string {
  return join(dir, "drops", `${id}@${lease}`);
}

/** The file that records every put and removal in kv: see `kv/history`. */
export function kvHistoryOf(tree: Pick<StateTree, "kv">): string {
  return join(tree.kv, "history.jsonl");
}

/** What runs of coding agents used. Each day has its own file, with the day added to this name: see `journal/daily`. */
export function costsOf({ dir }: Pick<StateTree, "dir">): string {
  return join(dir, "analytics", "costs.jsonl");
}

/** What is known of landings: see `worker/landing-files`. */
export function landingsDir(stateDir: string): string {
  return join(stateDir, "landings");
}

export function landingFileOf(stateDir: string, id: string, what: string): string {
  return join(landingsDir(stateDir), `${id}.${what}.json`);
}

/** @param mailboxDir the task mailbox, when it is outside the tree */
export function stateTree(dir: string, mailboxDir?: string): StateTree {
  return {
    dir,
    roadmap: join(dir, "roadmap.yaml"),
    config: join(dir, "config.yaml"),
    mailbox: mailboxDir ?? join(dir, "mailbox"),
    control: join(dir, "control"),
    leases: join(dir, "supervisor_leases.jsonl"),
    events: join(dir, "analytics", "supervisor_lifecycle.jsonl"),
    metrics: join(dir, "analytics", "metrics.json"),
    alerts: join(dir, "analytics", "alerts.jsonl"),
    runs: join(dir, "runs"),
    sessions: join(dir, "sessions"),
    bases: join(dir, "bases"),
    logs: join(dir, "logs"),
    evidence: join(dir, "evidence"),
    kv: join(dir, "kv"),
    workers: join(dir, "workers"),
    limits: join(dir, "limits"),
    jobs: join(dir, "cluster", "jobs"),
    remoteRuns: join(dir, "cluster", "runs.json"),
    controlState: join(dir, "control.json"),
    supervisor: join(dir, "supervisor.json"),
  };
}
