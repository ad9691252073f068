/** The request that posts a message to a url, in the shape that the receiver expects. Pure. */
import { createHmac } from "node:crypto";
import { isoTime } from "../../core/iso-time.ts";
import type { NotifySettings } from "../../core/notify-settings.ts";
import type { Message } from "./gathered.ts";

export interface PostRequest {
  url: string;
  headers: Record<string, string>;
  body: string;
}

/** The environment, host, state tree and time of the sender. */
export interface Sender {
  env: Readonly<Record<string, string | undefined>>;
  host: string;
  stateDir: string;
  nowMs: number;
}

const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/;
const SECRET_BYTES_MIN = 24;

/** A fault of the settings, or of the variables that they name. The message waits until a person mends the fault. */
export class BadTarget extends Error {}

/** @throws BadTarget */
export function requestFor(target: NotifySettings, message: Message, from: Sender): PostRequest {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (target.token_env !== undefined)
    headers["authorization"] = `Bearer ${variable(target.token_env, from)}`;
  const url = target.url ?? "";
  if (target.format === "slack") return { url, headers, body: slack(message) };
  if (target.format === "ntfy") return { ...ntfy(url, message), headers };
  const body = webhook(message, from);
  const { id } = message;
  // Standard Webhooks 1.0: the id is the same for each try. The time stamp is the time of the try.
  const seconds = String(Math.floor(from.nowMs / 1000));
  Object.assign(headers, { "webhook-id": id, "webhook-timestamp": seconds });
  if (target.secret_env !== undefined)
    headers["webhook-signature"] = sign(
      variable(target.secret_env, from),
      target.secret_env,
      `${id}.${seconds}.${body}`,
    );
  return { url, headers, body };
}

function sign(secret: string, name: string, content: string): string {
  const key = Buffer.from(SECRET.exec(secret)?.[1] ?? "", "base64");
  if (key.length < SECRET_BYTES_MIN)
    throw new BadTarget(
      `${name} is no secret of a webhook: expected whsec_ and the base64 of at least ${SECRET_BYTES_MIN} bytes`,
    );
  return `v1,${createHmac("sha256", key).update(content).digest("base64")}`;
}

function variable(name: string, { env }: Sender): string {
  const value = env[name];
  if (value === undefined || value === "")
    throw new BadTarget(`the variable ${name} is not set where mailchute run was started`);
  return value;
}

function webhook(message: Message, { host, stateDir }: Sender): string {
  const { title, text, counts, link, made_at_ms: madeAtMs } = message;
  return JSON.stringify({
    type: "mailchute.notification",
    timestamp: isoTime(madeAtMs),
    data: { id: message.id, title, text, counts, link, host, state_dir: stateDir },
  });
}

/** Escapes `&`, `<` and `>`, which are control characters of Slack: a task must not be able to mention all users. */
function slack({ title, text }: Message): string {
  const plain = `${title}\n${text}`
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
  return JSON.stringify({ text: plain });
}

/** Posts JSON to the root of the server. ntfy also takes a message in headers, but headers cannot carry UTF-8. */
function ntfy(url: string, { title, text, counts, link }: Message): Omit<PostRequest, "headers"> {
  const root = new URL(url);
  const path = root.pathname.replace(/\/+$/, "");
  const cut = path.lastIndexOf("/");
  root.pathname = path.slice(0, cut + 1);
  const isUrgent = counts.question !== undefined || counts.budget !== undefined;
  const body = {
    topic: decodeURIComponent(path.slice(cut + 1)),
    title,
    message: text,
    priority: isUrgent ? 4 : 3,
    click: link,
  };
  return { url: root.href, body: JSON.stringify(body) };
}
