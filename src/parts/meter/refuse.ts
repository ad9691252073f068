/** An answer of the meter itself. */
import type { ServerResponse } from "node:http";

export function refuse(response: ServerResponse, status: number, message: string): void {
  const body = { type: "error", error: { type: "api_error", message: `mailchute: ${message}` } };
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
