/** The streams of a cluster, their consumers and the subjects of messages, as the servers are asked to make them. Pure. */

export const WORK = "mc_work";
export const RESULT = "mc_result";
export const OVER = "mc_over";

const DAY_NS = 24 * 3600 * 1e9;
/** What has not been taken for so long goes (days): the origin publishes again what it misses, and a machine tells again. */
const KEPT_DAYS = 7;
export const MS_NS = 1e6;

/** Each message has a subject of its own, and a subject holds one message: that keeps a job from being there twice. */
export function streamConfigs(replicas: number): ({ name: string } & Record<string, unknown>)[] {
  const common = {
    storage: "file",
    retention: "workqueue",
    max_msgs_per_subject: 1,
    max_age: KEPT_DAYS * DAY_NS,
    num_replicas: replicas,
    // The subjects say what is the same. Message ids would be kept in memory.
    duplicate_window: 100 * MS_NS,
    // A request for one names any subject for the answer: a machine could send what it likes under the names of others.
    allow_direct: false,
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

/** Takes the messages of a stream under some subjects. Each one is given to one process at a time. */
export interface Consumer {
  stream: string;
  name: string;
  filter: string;
}

/** Of the jobs with one target. */
export const targetConsumer = (target: string): Consumer => ({
  stream: WORK,
  name: `target_${target}`,
  filter: `mc.work.${target}.>`,
});

/** Of the results for the tree of a machine. */
export const homeConsumer = (machine: string): Consumer => ({
  stream: RESULT,
  name: `home_${machine}`,
  filter: `mc.result.${machine}.>`,
});

/** Of what trees tell a machine. */
export const machineConsumer = (machine: string): Consumer => ({
  stream: OVER,
  name: `machine_${machine}`,
  filter: `mc.over.${machine}.>`,
});

/** @param created when the stream was made, as the servers say: text without spaces. See `birthOf` */
export const birthText = (stream: string, created: string): string => `${stream}@${created}`;

/**
 * A message that was given to one process is not given to another one before `ackWaitMs`.
 * @param birth of its stream, see `birthText`
 */
export function consumerConfig({ name, filter }: Consumer, ackWaitMs: number, birth: string) {
  return {
    durable_name: name,
    description: birth,
    filter_subject: filter,
    ack_policy: "explicit",
    ack_wait: ackWaitMs * MS_NS,
    max_deliver: -1,
    max_ack_pending: -1,
  };
}

// An id begins with the name of its tree, and that with the name of its machine: see `Dispatch`.
export const workSubject = (target: string, id: string): string => `mc.work.${target}.${id}`;
export const resultSubject = (tree: string, target: string, machine: string, id: string): string =>
  `mc.result.${tree}.${target}.${machine}.${id}`;
export const overSubject = (machine: string, id: string): string => `mc.over.${machine}.${id}`;
export const beatSubject = (tree: string, machine: string): string => `mc.beat.${tree}.${machine}`;
export const askSubject = (tree: string): string => `mc.ask.${tree}`;

/** Asks a machine for a part of a log of a run that it had for this tree; and what it answers. */
export const logAskSubject = (machine: string, tree: string): string =>
  `mc.want.${machine}.${tree}`;
export const logSubject = (tree: string, machine: string): string => `mc.log.${tree}.${machine}`;

export const machineSubject = (machine: string): string => `mc.machine.${machine}`;

export const controlSubject = (machine: string): string => `mc.control.${machine}`;

/** The subjects under which servers answer a machine begin so. */
export const inboxOf = (machine: string): string => `_INBOX_${machine}`;

/** The tokens of a subject behind the first ones; the rest, which is an id and has dots, is the last one. */
export function readSubject(subject: string, tokens: number): string[] {
  const parts = subject.split(".");
  return [...parts.slice(2, 2 + tokens), parts.slice(2 + tokens).join(".")];
}
