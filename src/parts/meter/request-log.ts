/** What a run has asked: `requests.jsonl` in its folder, a line for each request. Keys are never in it, and bodies only if that is set. */
import { join } from "node:path";
import type { Usage } from "../../agents/stream/facts.ts";
import { appendRegularText } from "../../host/regular-file.ts";

export interface RequestRecord {
  /** Unix ms. */
  at: number;
  /** Of the address, without its query. */
  path: string;
  model: string;
  /** Null: no answer. */
  status: number | null;
  duration_ms: number;
  input_tokens: number;
  cached_input_tokens: number;
  output_tokens: number;
  /** Only with `record`. */
  content_type?: string;
  request?: string;
  answer?: string;
}

export const REQUESTS = "requests.jsonl";
/** With more than this, a run keeps no further bodies, because its folder has a limit (bytes). */
const BODIES_MAX = 64 * 1024 * 1024;

export class RequestLog {
  private readonly path: string;
  private bytes = 0;

  constructor(
    runDir: string,
    private readonly keepsBodies: boolean,
  ) {
    this.path = join(runDir, REQUESTS);
  }

  get hasRoom(): boolean {
    return this.keepsBodies && this.bytes < BODIES_MAX;
  }

  /** A full disk loses the line, and not the run. */
  write(record: RequestRecord): void {
    const text = `${JSON.stringify(record)}\n`;
    this.bytes += text.length;
    try {
      appendRegularText(this.path, text);
    } catch {
      // The program may also have put a folder there.
    }
  }
}

export function tokensIn({
  inputTokens,
  cachedInputTokens,
  outputTokens,
}: Usage): Pick<RequestRecord, "input_tokens" | "cached_input_tokens" | "output_tokens"> {
  return {
    input_tokens: inputTokens,
    cached_input_tokens: cachedInputTokens,
    output_tokens: outputTokens,
  };
}
