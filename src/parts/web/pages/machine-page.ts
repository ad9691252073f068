/** The page of the machine: what `doctor` finds, and each setting with its source, as `config` prints them. */
import { messageOf } from "../../../core/errors.ts";
import { type Block, type Page, say, shown, table } from "../page.ts";
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

const LOOKS = { ok: "good", warn: "warn", fail: "bad" } as const;

export async function machinePage(verbs: VerbReader): Promise<Page> {
  const doctor = await verbs.read({ verb: "doctor", againMs: CHECK_AGAIN_MS });
  return {
    title: "Machine",
    command: "mailchute doctor; mailchute config",
    blocks: [
      table(
        "Checks",
        ["check", "result", "what", "do"],
        ((doctor?.["checks"] ?? []) as Check[]).map((one) => [
          shown(one.name),
          { look: LOOKS[one.status], word: one.status },
          shown(one.message),
          shown(one.do ?? ""),
        ]),
        "no check was made",
      ),
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
    const rows = Object.entries(settings).map(([name, { value, source }]) => [
      shown(name),
      shown(withoutSecrets(value)).slice(0, VALUE_CHARS_MAX),
      shown(source),
    ]);
    return table("Settings", ["setting", "value", "source"], rows, "no settings");
  } catch (error) {
    // The checks above name the file and the fault.
    return say(`the settings cannot be read: ${shown(messageOf(error))}`, true);
  }
}
