/** Loads the template of a packet: the user's own from the state tree, or the one from the package. */
import fs from "node:fs";
import { join } from "node:path";
import { messageOf, systemCode } from "../../../core/errors.ts";
import { pathInPackage } from "../../../host/package.ts";
import type { PacketRole } from "./packet.ts";

const TEMPLATE_BYTES_MAX = 1024 * 1024;

const builtIn = new Map<PacketRole, string>();

export interface Template {
  text: string;
  /** Why the user's own template could not be used. */
  problem?: string;
}

export function loadTemplate(stateDir: string, role: PacketRole): Template {
  const own = join(stateDir, "templates", `${role}.md`);
  try {
    const stats = fs.statSync(own);
    if (!stats.isFile()) return { text: loadBuiltIn(role), problem: `${own} is no file` };
    if (stats.size > TEMPLATE_BYTES_MAX)
      return {
        text: loadBuiltIn(role),
        problem: `${own} is larger than ${TEMPLATE_BYTES_MAX} bytes`,
      };
    return { text: fs.readFileSync(own, "utf8") };
  } catch (error) {
    if (systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR")
      return { text: loadBuiltIn(role) };
    return { text: loadBuiltIn(role), problem: messageOf(error) };
  }
}

function loadBuiltIn(role: PacketRole): string {
  let text = builtIn.get(role);
  if (text === undefined) {
    text = fs.readFileSync(pathInPackage(`templates/${role}.md`), "utf8");
    builtIn.set(role, text);
  }
  return text;
}
