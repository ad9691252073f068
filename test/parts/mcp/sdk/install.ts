/**
 * Installs the client of the protocol's own kit into a folder that is kept: `$MAILCHUTE_MCP_CACHE`, or one below node_modules. Vitest runs
 * it once, before `npm run test:mcp`.
 */
import { fileURLToPath } from "node:url";
import { installPackages } from "../../../support/install-packages.ts";

export const CACHE =
  process.env["MAILCHUTE_MCP_CACHE"] ??
  fileURLToPath(new URL("../../../../node_modules/.cache/mailchute-mcp", import.meta.url));

export default function install(): void {
  installPackages(CACHE, { "@modelcontextprotocol/client": "2.4.0" });
}
