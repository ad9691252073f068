/**
 * Reads the program's own record of a session: `projects/<folder>/<session>.jsonl` in its home. A message is in it when the session has it.
 * The stream repeats a message earlier than that.
 */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import type { SessionRecord } from "../../agents/stream/agent-program.ts";
import { parseObject } from "../../core/json-object.ts";
import type { AgentSettings } from "../../core/settings.ts";
import { listDir } from "../../host/list-dir.ts";
import { objectAt, textAt } from "./fields.ts";

export const transcript: SessionRecord = { find, readMessage };

/** The name of the folder comes from the directory of the session, in a way that other versions may change. So all folders are tried. */
function find({ env }: AgentSettings, sessionId: string): string | undefined {
  const home = env?.["HOME"] ?? process.env["HOME"] ?? os.homedir();
  const dir =
    env?.["CLAUDE_CONFIG_DIR"] ?? process.env["CLAUDE_CONFIG_DIR"] ?? join(home, ".claude");
  const projects = join(dir, "projects");
  // The id of another program's session may be no name of a file.
  if (!/^[\w-]+$/.test(sessionId)) return undefined;
  return listDir(projects)
    .map((name) => join(projects, name, `${sessionId}.jsonl`))
    .find((path) => fs.existsSync(path));
}

/** A message that came while a turn ran stands in an attachment. */
function readMessage(line: string): { uuid: string } | undefined {
  if (!line.includes('"user"') && !line.includes('"source_uuid"')) return undefined;
  const json = parseObject(line) ?? {};
  const uuid =
    textAt(json, "type") === "user"
      ? textAt(json, "uuid")
      : textAt(objectAt(json, "attachment") ?? {}, "source_uuid");
  return uuid === undefined ? undefined : { uuid };
}
