/** A receiver of notifications on loopback: keeps what it gets, and answers as the test says. */
import http from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface Received {
  path: string;
  headers: http.IncomingHttpHeaders;
  body: string;
}

export interface Receiver {
  url: string;
  received: Received[];
  /** What it answers to the next requests, in order; 200 when there is none. */
  answers: (number | { status: number; headers: Record<string, string> })[];
}

export async function newReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  const answers: Receiver["answers"] = [];
  const server = http.createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (data: string) => (body += data));
    request.on("end", () => {
      received.push({ path: request.url ?? "", headers: request.headers, body });
      const answer = answers.shift() ?? 200;
      const { status, headers } =
        typeof answer === "number" ? { status: answer, headers: {} } : answer;
      response.writeHead(status, headers).end("ok");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received, answers };
}
