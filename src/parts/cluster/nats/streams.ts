/** The streams of a cluster and their consumers, as the servers are asked to make them. Pure. */

export const WORK = "mc_work";
export const RESULT = "mc_result";
export const OVER = "mc_over";

const DAY_NS = 24 * 3600 * 1e9;
/** What has not been taken for so long goes (days): the origin publishes again what it misses, and a machine tells again. */
const KEPT_DAYS = 7;
const MS_NS = 1e6;

/** Each message has a subject of its own, and a subject holds one message: that keeps a job from being there twice. */
export function streamConfigs(replicas: number): Record<string, unknown>[] {
  const common = {
    storage: "file",
    retention: "workqueue",
    max_msgs_per_subject: 1,
    max_age: KEPT_DAYS * DAY_NS,
    num_replicas: replicas,
    // The subjects say what is the same. Message ids would be kept in memory.
    duplicate_window: 100 * MS_NS,
  };
  return [
    // The job that is there stays: a machine may have it.
    {
      ...common,
      name: WORK,
      subjects: ["mc.work.>"],
      discard: "new",
      discard_new_per_subject: true,
    },
    { ...common, name: RESULT, subjects: ["mc.result.>"], discard: "old" },
    { ...common, name: OVER, subjects: ["mc.over.>"], discard: "old" },
  ];
}

export const workSubject = (target: string, id: string): string => `mc.work.${target}.${id}`;
export const resultSubject = (tree: string, machine: string, id: string): string =>
  `mc.result.${tree}.${machine}.${id}`;
export const overSubject = (machine: string, id: string): string => `mc.over.${machine}.${id}`;
export const beatSubject = (tree: string): string => `mc.beat.${tree}`;
export const askSubject = (tree: string): string => `mc.ask.${tree}`;

export const machineSubject = (machine: string): string => `mc.machine.${machine}`;

export const controlSubject = (machine: string): string => `mc.control.${machine}`;

/** The tokens of a subject behind the first ones; the rest, which is an id and has dots, is the last one. */
export function readSubject(subject: string, tokens: number): string[] {
  const parts = subject.split(".");
  return [...parts.slice(2, 2 + tokens), parts.slice(2 + tokens).join(".")];
}

/** A consumer of all messages under one subject; a message that was given to one process is not given to another one until then. */
export function consumerConfig(name: string, filter: string, ackWaitMs: number) {
  return {
    durable_name: name,
    filter_subject: filter,
    ack_policy: "explicit",
    ack_wait: ackWaitMs * MS_NS,
    max_deliver: -1,
    max_ack_pending: -1,
  };
}
