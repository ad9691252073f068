/** The settings of notifications: who gets which news, and how. Pure. */

export const NOTIFY_TOPICS = [
  "failed",
  "question",
  "quota",
  "budget",
  "stuck",
  "drained",
  "morning",
] as const;
export type NotifyTopic = (typeof NOTIFY_TOPICS)[number];

export const NOTIFY_FORMATS = ["webhook", "ntfy", "slack"] as const;

export interface NotifySettings {
  name: string;
  /** A program with its arguments; it gets the message as variables and on stdin. Either this or `url`. */
  command?: string[];
  url?: string;
  /** The format of the body that mailchute posts to the url. Default: webhook. */
  format?: (typeof NOTIFY_FORMATS)[number];
  /** The name of the variable with the secret that signs a webhook (`whsec_…`). */
  secret_env?: string;
  /** The name of the variable with a token, sent as `Authorization: Bearer`. */
  token_env?: string;
  /** Default: all but `drained` and `morning`. */
  on?: NotifyTopic[];
  /** The time of the day for `morning`, in the time zone of this machine: "07:00". */
  at?: string;
  /** The least time between two messages (ms). One message reports all that happened in between. Default: a minute. */
  every_ms?: number;
}

export const NOTIFY_EVERY_MS = 60_000;
const DEFAULT_TOPICS: readonly NotifyTopic[] = ["failed", "question", "quota", "budget", "stuck"];

export function topicsOf({ on, at }: NotifySettings): readonly NotifyTopic[] {
  const topics = on ?? DEFAULT_TOPICS;
  return at === undefined || topics.includes("morning") ? topics : [...topics, "morning"];
}

/** @returns the fault, or undefined */
export function explainBadNotify(targets: readonly NotifySettings[]): string | undefined {
  const names = new Set<string>();
  for (const target of targets) {
    const { name, command, url, format, secret_env: secret, token_env: token, at, on } = target;
    if (names.has(name)) return `the name ${JSON.stringify(name)} is used twice`;
    names.add(name);
    if ((command === undefined) === (url === undefined))
      return `${name} needs either a command or a url`;
    if (command !== undefined && (format ?? secret ?? token) !== undefined)
      return `${name} has a command: format, secret_env and token_env are for a url`;
    if (secret !== undefined && format !== undefined && format !== "webhook")
      return `${name}: only format webhook is signed with secret_env`;
    if (url !== undefined && !isHttp(url))
      return `${name}: the url must begin with http:// or https://`;
    if (format === "ntfy" && url !== undefined && new URL(url).pathname.length < 2)
      return `${name}: the url must end with the topic, as in https://ntfy.sh/my-topic`;
    if (on?.includes("morning") === true && at === undefined)
      return `${name} names morning in on, and needs at: "07:00"`;
  }
  return undefined;
}

function isHttp(url: string): boolean {
  try {
    return /^https?:$/.test(new URL(url).protocol);
  } catch {
    return false;
  }
}
