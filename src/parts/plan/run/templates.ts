/** Loads the template of a packet: the user's own from the state tree, or the one from the package. */
import { join } from "node:path";
import { messageOf, systemCode } from "../../../core/errors.ts";
import { pathInPackage } from "../../../host/package.ts";
import { NAMED, readRegularText } from "../../../host/regular-file.ts";
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
    return { text: readRegularText(own, { isNamed: true, bytesMax: TEMPLATE_BYTES_MAX }) };
  } catch (error) {
    if (systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR")
      return { text: loadBuiltIn(role) };
    return { text: loadBuiltIn(role), problem: messageOf(error) };
  }
}

function loadBuiltIn(role: PacketRole): string {
  let text = builtIn.get(role);
  if (text === undefined) {
    text = readRegularText(pathInPackage(`templates/${role}.md`), NAMED);
    builtIn.set(role, text);
  }
  return text;
}
