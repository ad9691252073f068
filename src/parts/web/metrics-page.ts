/** `/metrics`: the numbers of the pool for Prometheus. Only its own token opens it, and that token opens nothing else. */
import type { IncomingHttpHeaders } from "node:http";
import { ErrUsage } from "../../cli/shell/command-spec.ts";
import { messageOf } from "../../core/errors.ts";
import { lookInto } from "../../host/regular-file.ts";
import { CONTENT_TYPE } from "../../view/metrics/exposition.ts";
import { isSame, WrongOnes } from "./secrets.ts";

/** The form of a token in RFC 6750. It must be long, because a short one could be guessed. */
const TOKEN = /^[A-Za-z0-9._~+/-]{16,512}=*$/;
const FILE_BYTES_MAX = 4096;
const WRONG_TOKENS_MAX = 30;
/** The numbers are made again after this time at the earliest (ms). Making them may take this share of a core. */
const AGAIN_MS = 1000;
const SHARE = 0.05;

export interface MetricsAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

export interface MetricsPageOptions {
  token: string;
  /** Makes the numbers. It may throw. */
  make: () => string;
  /** A clock that is never set back. */
  nowMs?: () => number;
}

export class MetricsPage {
  private readonly token: string;
  private readonly make: () => string;
  private readonly nowMs: () => number;
  private readonly wrong: WrongOnes;
  private made: { text: string; untilMs: number } | undefined;

  constructor({ token, make, nowMs = () => performance.now() }: MetricsPageOptions) {
    this.token = token;
    this.make = make;
    this.nowMs = nowMs;
    this.wrong = new WrongOnes(WRONG_TOKENS_MAX, nowMs);
  }

  answer(method: string, { authorization }: IncomingHttpHeaders): MetricsAnswer {
    if (method !== "GET") return says(405, "this method is not served here", { Allow: "GET" });
    const [, token] = /^Bearer +(\S+)$/i.exec(authorization ?? "") ?? [];
    // A right token passes even after many wrong ones, so that no other user can lock the owner out.
    if (token === undefined || !isSame(token, this.token)) {
      if (token !== undefined && this.wrong.isOneTooMany())
        return says(429, "too many wrong tokens: wait a minute", { "Retry-After": "60" });
      return says(401, "send the token of --metrics-token-file", { "WWW-Authenticate": "Bearer" });
    }
    try {
      return { status: 200, headers: { "Content-Type": CONTENT_TYPE }, body: this.text() };
    } catch (error) {
      // No numbers are better than wrong ones, because a failed scrape is noticed.
      return says(503, `the tree cannot be read: ${messageOf(error)}`);
    }
  }

  private text(): string {
    const fromMs = this.nowMs();
    if (this.made !== undefined && fromMs < this.made.untilMs) return this.made.text;
    const text = this.make();
    const toMs = this.nowMs();
    this.made = { text, untilMs: toMs + Math.max(AGAIN_MS, (toMs - fromMs) / SHARE) };
    return text;
  }
}

function says(status: number, text: string, headers: Record<string, string> = {}): MetricsAnswer {
  return {
    status,
    headers: { "Content-Type": "text/plain; charset=utf-8", ...headers },
    body: `${text}\n`,
  };
}

/** The token in a file, without the line break at its end. @throws ErrUsage, which never shows the content of the file */
export function readToken(path: string): string {
  const hint = "for example: (umask 077; openssl rand -hex 32 > FILE)";
  let text: string;
  let mode: number;
  try {
    const { stats, bytes } = lookInto(path, { isNamed: true, bytesMax: FILE_BYTES_MAX });
    if (bytes === undefined) throw new Error("it is no small file");
    mode = stats.mode;
    text = bytes.toString().trimEnd();
  } catch (error) {
    throw new ErrUsage(`--metrics-token-file cannot be read: ${messageOf(error)}`, hint);
  }
  if ((mode & 0o007) !== 0)
    throw new ErrUsage(
      `--metrics-token-file: every user of this machine may use ${path}`,
      `chmod o= ${path}`,
    );
  if (!TOKEN.test(text))
    throw new ErrUsage(
      "--metrics-token-file wants one token of 16 to 512 letters, digits or ._~+/-",
      hint,
    );
  return text;
}
