/** The options of a script. `--help` prints the first comment of its file; a wrong option ends it with 2 and a line that says so. */
import fs from "node:fs";
import { parseArgs } from "node:util";

/** @param url `import.meta.url` of the script. @param config as `parseArgs` takes it */
export function readFlags(url, { options = {}, ...config } = {}) {
  try {
    const parsed = parseArgs({ ...config, options: { ...options, help: { type: "boolean" } } });
    if (!parsed.values.help) return parsed;
    const [, text = ""] = /\/\*\*([\s\S]*?)\*\//.exec(fs.readFileSync(new URL(url), "utf8")) ?? [];
    console.log(text.replace(/^\s*\* ?/gm, "").trim());
    process.exit(0);
  } catch (error) {
    console.error(`${error.message.split(". ")[0]} (--help explains)`);
    process.exit(2);
  }
}
