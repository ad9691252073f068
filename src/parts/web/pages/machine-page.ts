/** The page of the machine: what `doctor` finds, and each setting with its source, as `config` prints them. */
import { type Block, type Page, say, shown } from "../page.ts";
import type { VerbReader } from "../verb-reader.ts";
import { withoutSecrets } from "../without-secrets.ts";

/** How often the checks run (ms). They start programs and read the whole tree. */
const CHECK_AGAIN_MS = 30_000;
const SETTINGS_AGAIN_MS = 2000;
const VALUE_CHARS_MAX = 2000;

interface Check {
  name: string;
  status: "ok" | "warn" | "fail";
  message: string;
  do?: string;
}

/** A sign and its word, with a space between them that does not break. */
const SIGNS: Readonly<Record<Check["status"], string>> = {
  ok: "✓\u00a0ok",
  warn: "!\u00a0warn",
  fail: "✗\u00a0fail",
};

export async function machinePage(verbs: VerbReader): Promise<Page> {
  const doctor = await verbs.read({ verb: "doctor", againMs: CHECK_AGAIN_MS });
  return {
    title: "Machine",
    command: "mailchute doctor; mailchute config",
    blocks: [
      {
        kind: "table",
        title: "Checks",
        columns: ["check", "result", "what", "do"],
        rows: ((doctor?.["checks"] ?? []) as Check[]).map((one) => [
          shown(one.name),
          SIGNS[one.status],
          shown(one.message),
          shown(one.do ?? ""),
        ]),
        none: "no check was made",
      },
      await settingsOf(verbs),
    ],
  };
}

async function settingsOf(verbs: VerbReader): Promise<Block> {
  try {
    const found = await verbs.read({ verb: "config", againMs: SETTINGS_AGAIN_MS });
    const settings = (found?.["settings"] ?? {}) as Record<
      string,
      { value: unknown; source: string }
    >;
    return {
      kind: "table",
      title: "Settings",
      columns: ["setting", "value", "source"],
      rows: Object.entries(settings).map(([name, { value, source }]) => [
        shown(name),
        shown(withoutSecrets(value)).slice(0, VALUE_CHARS_MAX),
        shown(source),
      ]),
      none: "no settings",
    };
  } catch (error) {
    // The checks above name the file and the fault.
    return say(
      `the settings cannot be read: ${shown(error instanceof Error ? error.message : error)}`,
      true,
    );
  }
}
