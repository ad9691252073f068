/** The configuration of the streams of a cluster and their consumers, and the subjects of messages. Pure. */

export const WORK = "mc_work";
export const RESULT = "mc_result";
export const OVER = "mc_over";

const DAY_NS = 24 * 3600 * 1e9;
/** The servers remove older messages (days). An origin publishes a missing job again, and a machine tells its result again. */
const KEPT_DAYS = 7;
export const MS_NS = 1e6;

/** Each message has its own subject, and a subject holds one message. So the servers never hold a job twice. */
export function streamConfigs(replicas: number): ({ name: string } & Record<string, unknown>)[] {
  const common = {
    storage: "file",
    retention: "workqueue",
    max_msgs_per_subject: 1,
    max_age: KEPT_DAYS * DAY_NS,
    num_replicas: replicas,
    // Subjects already prevent duplicates. Servers would keep message ids in memory.
    duplicate_window: 100 * MS_NS,
    // A direct request may name any subject for its answer, so a machine could send messages under the names of others.
    allow_direct: false,
  };
  return [
    // The old job stays, because a machine may have it.
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

/** Takes the messages of a stream under some subjects. It gives each message to one process at a time. */
export interface Consumer {
  stream: string;
  name: string;
  filter: string;
}

/** The consumer of the jobs with one target. */
export const targetConsumer = (target: string): Consumer => ({
  stream: WORK,
  name: `target_${target}`,
  filter: `mc.work.${target}.>`,
});

/** The consumer of the results for the tree of a machine. */
export const homeConsumer = (machine: string): Consumer => ({
  stream: RESULT,
  name: `home_${machine}`,
  filter: `mc.result.${machine}.>`,
});

/** The consumer of messages of trees to a machine. */
export const machineConsumer = (machine: string): Consumer => ({
  stream: OVER,
  name: `machine_${machine}`,
  filter: `mc.over.${machine}.>`,
});

/** @param created the time of the servers when the stream was made, a text without spaces. See `birthOf` */
export const birthText = (stream: string, created: string): string => `${stream}@${created}`;

/**
 * The server does not give a message to a second process before `ackWaitMs`.
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

/** The subjects of a question to a machine for a part of a log, and of its answer. */
export const logAskSubject = (machine: string, tree: string): string =>
  `mc.want.${machine}.${tree}`;
export const logSubject = (tree: string, machine: string): string => `mc.log.${tree}.${machine}`;

export const machineSubject = (machine: string): string => `mc.machine.${machine}`;

export const controlSubject = (machine: string): string => `mc.control.${machine}`;

/** The prefix of the subjects under which servers answer a machine. */
export const inboxOf = (machine: string): string => `_INBOX_${machine}`;

/** The tokens of a subject after the first two. The last one is the rest: an id, which may have dots. */
export function readSubject(subject: string, tokens: number): string[] {
  const parts = subject.split(".");
  return [...parts.slice(2, 2 + tokens), parts.slice(2 + tokens).join(".")];
}
