/** A client of `mailchute mcp`, which calls its tools one after the other. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const BIN = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));

export interface McpClient {
  /** @returns what the server answers */
  request: (method: string, params?: object) => Promise<Record<string, unknown>>;
  /** Calls a tool. @returns its text, after "error: " when it has failed */
  call: (name: string, args?: object) => Promise<string>;
  /** Closes its input. @returns the exit code */
  end: () => Promise<number | null>;
}

export function startClient(
  cwd: string,
  args: readonly string[],
  env: Record<string, string>,
): McpClient {
  const child = spawn(process.execPath, [BIN, "mcp", ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let id = 0;
  const request: McpClient["request"] = async (method, params) => {
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: ++id, method, params })}\n`);
    const { value, done } = await lines.next();
    if (done === true) throw new Error("the server has ended");
    return JSON.parse(value);
  };
  const call: McpClient["call"] = async (name, given = {}) => {
    const { result } = await request("tools/call", { name, arguments: given });
    const { content, isError } = result as { content: { text: string }[]; isError: boolean };
    return `${isError ? "error: " : ""}${content[0]?.text}`;
  };
  const end = async (): Promise<number | null> => {
    child.stdin.end();
    return await ended;
  };
  return { request, call, end };
}
