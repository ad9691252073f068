/** Sends one message to a target, once. */
import { messageOf } from "../../core/errors.ts";
import type { NotifySettings } from "../../core/notify-settings.ts";
import { visibleMessage } from "../../core/visible.ts";
import { spawn } from "../../host/spawn.ts";
import type { Message } from "./gathered.ts";
import { BadTarget, requestFor, type Sender } from "./request.ts";

const LIMIT_MS = 30_000;
const RETRY_AFTER_MS_MAX = 3_600_000;
const STDERR_CHARS_MAX = 2000;

export type SendResult = { isSent: true } | { isSent: false; why: string; retryAfterMs?: number };

/** Never rejects. Takes at most 30 seconds. */
export async function sendMessage(
  target: NotifySettings,
  message: Message,
  from: Sender,
): Promise<SendResult> {
  try {
    return target.command === undefined
      ? await post(target, message, from)
      : await runCommand(target.command, message, from);
  } catch (error) {
    return { isSent: false, why: explain(error) };
  }
}

async function post(target: NotifySettings, message: Message, from: Sender): Promise<SendResult> {
  const { url, headers, body } = requestFor(target, message, from);
  const answer = await fetch(url, {
    method: "POST",
    headers,
    body,
    // A redirect would send the token to another address.
    redirect: "manual",
    signal: AbortSignal.timeout(LIMIT_MS),
  });
  await answer.body?.cancel();
  if (answer.ok) return { isSent: true };
  const why = `${new URL(url).host} answered ${answer.status} ${answer.statusText}`.trim();
  const seconds = answer.headers.get("retry-after") ?? "";
  if (!/^\d{1,6}$/.test(seconds)) return { isSent: false, why };
  return { isSent: false, why, retryAfterMs: Math.min(Number(seconds) * 1000, RETRY_AFTER_MS_MAX) };
}

/** Runs the program with the text on stdin and all fields as variables. So no part of the message is read as a command. */
function runCommand(
  [program = "", ...args]: readonly string[],
  message: Message,
  from: Sender,
): Promise<SendResult> {
  const { id, title, text, counts } = message;
  const env = {
    ...from.env,
    MAILCHUTE_NOTIFY_ID: id,
    MAILCHUTE_NOTIFY_TITLE: title,
    MAILCHUTE_NOTIFY_TEXT: text,
    MAILCHUTE_NOTIFY_TOPICS: Object.keys(counts).join(","),
  };
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      env,
      // A process group of its own, so that the program and its children end at the limit.
      detached: true,
      stdio: ["pipe", "ignore", "pipe"],
    });
    let stderr = "";
    const limit = setTimeout(() => {
      endGroup(child.pid);
      resolve({ isSent: false, why: `${program} did not end in ${LIMIT_MS / 1000} seconds` });
    }, LIMIT_MS);
    child.stdin.on("error", () => {});
    child.stdin.end(`${title}\n${text}\n`);
    child.stderr.setEncoding("utf8").on("data", (data: string) => {
      if (stderr.length < STDERR_CHARS_MAX) stderr += data;
    });
    child.once("error", (error) => {
      clearTimeout(limit);
      reject(error);
    });
    child.once("exit", (code, signal) => {
      clearTimeout(limit);
      // A background process of the program may hold its output open.
      child.stderr.destroy();
      if (code === 0) return resolve({ isSent: true });
      const how = signal === null ? `ended with ${code}` : `was ended by ${signal}`;
      const said = stderr.trim() === "" ? "" : `: ${stderr.trim()}`;
      resolve({ isSent: false, why: visibleMessage(`${program} ${how}${said}`) });
    });
  });
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The program has just ended.
  }
}

function explain(error: unknown): string {
  if (error instanceof BadTarget) return error.message;
  // The message of fetch itself is only "fetch failed".
  const cause = error instanceof Error ? error.cause : undefined;
  return visibleMessage(messageOf(cause ?? error));
}
