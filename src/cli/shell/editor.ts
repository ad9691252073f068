/** Lets a person change a text in the editor of their choice. */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { ErrIo } from "../../core/errors.ts";
import { NAMED, readRegularText, writeNew } from "../../host/regular-file.ts";
import { spawn } from "../../host/spawn.ts";
import { ErrUsage } from "./command-spec.ts";

export interface Edited {
  text: string;
  /** The file of the text. It is kept when the text cannot be used. */
  path: string;
  /** Removes the file. */
  done(): void;
}

/**
 * @param name the name of the file, which tells the editor what kind of text it is
 * @throws ErrUsage without a terminal or an editor, ErrIo when the editor reports a failure
 */
export async function editText(
  env: NodeJS.ProcessEnv,
  name: string,
  text: string,
): Promise<Edited> {
  const editor = [env["VISUAL"], env["EDITOR"]].find((one) => one !== undefined && one !== "");
  if (editor === undefined && !process.stdin.isTTY)
    throw new ErrUsage("there is no editor", "set EDITOR, or say what to change by options");
  const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-edit-"));
  const path = join(dir, name);
  const done = (): void => fs.rmSync(dir, { recursive: true, force: true });
  writeNew(path, text);
  const command = editor ?? "vi";
  // Use a shell, because the variable may hold arguments.
  const child = spawn("/bin/sh", ["-c", `${command} "$1"`, command, path], {
    stdio: "inherit",
    env,
  });
  const code = await new Promise<number | null>((resolve) => {
    child.on("error", () => resolve(null));
    child.on("exit", resolve);
  });
  if (code !== 0) {
    done();
    throw new ErrIo(`the editor ${command} failed, so nothing was changed`, {
      phase: "edit",
      hint: "set EDITOR to another one",
    });
  }
  return { text: readRegularText(path, NAMED), path, done };
}
