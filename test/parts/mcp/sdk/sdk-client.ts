/** The client of the protocol's own kit, with `mailchute mcp` as its server. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { CACHE } from "./install.ts";

const BIN = fileURLToPath(new URL("../../../../bin/mailchute.js", import.meta.url));

interface Described {
  name: string;
  description: string;
  inputSchema: { type: string; properties: Record<string, unknown>; required?: string[] };
}

/** What these tests use of it: its types are not here at `npm ci`. */
export interface SdkClient {
  connect(transport: object): Promise<void>;
  close(): Promise<void>;
  getNegotiatedProtocolVersion(): string;
  getServerCapabilities(): object;
  listTools(): Promise<{ tools: Described[] }>;
  callTool(
    call: { name: string; arguments: object },
    options?: { signal?: AbortSignal },
  ): Promise<{ content: { type: string; text: string }[]; isError?: boolean }>;
  listResources(): Promise<{ resources: { uri: string; name: string }[] }>;
  listResourceTemplates(): Promise<{ resourceTemplates: { uriTemplate: string }[] }>;
  readResource(wanted: { uri: string }): Promise<{ contents: { text: string }[] }>;
}

export interface Connected {
  client: SdkClient;
  /** Pid of the server. */
  pid: number;
}

/** @param mode how client and server agree on a version: `legacy` is what clients did before 2026 */
export async function connect(
  cwd: string,
  env: Record<string, string>,
  args: readonly string[],
  mode: "auto" | "legacy" = "auto",
): Promise<Connected> {
  const load = createRequire(join(CACHE, "package.json"));
  const { Client } = load("@modelcontextprotocol/client") as {
    Client: new (info: object, options: object) => SdkClient;
  };
  const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio") as {
    StdioClientTransport: new (server: object) => { pid: number };
  };
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [BIN, "mcp", ...args],
    cwd,
    env: { ...(process.env as Record<string, string>), ...env },
  });
  onTestFinished(async () => await client.close());
  await client.connect(transport);
  return { client, pid: transport.pid };
}
