/**
 * The way of a program behind walls to the hosts that it may reach: a proxy on a socket in its temporary folder. The program has a network of
 * its own, in which `entry.ts` passes the connections on to that socket.
 */
import http from "node:http";
import net from "node:net";
import { join } from "node:path";
import { makeDirs } from "../../host/make-dirs.ts";

const SOCKET = [".network", "proxy"] as const;

export interface Network {
  /** The path of the socket, as the program sees it. */
  readonly socket: string;
  close(): void;
}

/** @param allowed names of hosts; `*.example.com` is every host below it, `host:port` only that port */
export async function openNetwork(temporary: string, allowed: readonly string[]): Promise<Network> {
  makeDirs(join(temporary, SOCKET[0]));
  const open = new Set<net.Socket>();
  const server = http.createServer((request, answer) => {
    const url = readUrl(request.url);
    if (url?.protocol !== "http:" || !mayReach(url.hostname, url.port || "80", allowed)) {
      answer.writeHead(403).end(refusal(url?.host ?? "this address"));
      return;
    }
    const { method, headers } = request;
    const onward = http.request(url, { method, headers }, (got) => {
      answer.writeHead(got.statusCode ?? 502, got.headers);
      got.pipe(answer);
    });
    onward.on("error", () => answer.destroy());
    request.pipe(onward);
  });
  server.on("connect", (request, socket: net.Socket, head) => {
    const [, host = "", port = "443"] = /^\[?([^\]]*)\]?:(\d+)$/.exec(request.url ?? "") ?? [];
    if (!mayReach(host, port, allowed)) {
      socket.end(`HTTP/1.1 403 Forbidden\r\n\r\n${refusal(`${host}:${port}`)}`);
      return;
    }
    const onward = net.connect(Number(port), host, () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      onward.write(head);
      onward.pipe(socket).pipe(onward);
    });
    track(onward, open);
    onward.on("error", () => socket.destroy());
    socket.on("error", () => onward.destroy());
  });
  server.on("connection", (socket) => track(socket, open));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(join(temporary, ...SOCKET), resolve);
  });
  return {
    socket: join("/tmp", ...SOCKET),
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

function track(socket: net.Socket, open: Set<net.Socket>): void {
  open.add(socket);
  socket.on("error", () => {});
  socket.once("close", () => open.delete(socket));
}

function mayReach(host: string, port: string, allowed: readonly string[]): boolean {
  const name = host.toLowerCase().replace(/\.$/, "");
  return allowed.some((one) => {
    const [, pattern = "", only] = /^(.*?)(?::(\d+))?$/.exec(one.toLowerCase()) ?? [];
    if (only !== undefined && only !== port) return false;
    return pattern.startsWith("*.") ? name.endsWith(pattern.slice(1)) : name === pattern;
  });
}

function readUrl(text: string | undefined): URL | undefined {
  return text !== undefined && URL.canParse(text) ? new URL(text) : undefined;
}

function refusal(where: string): string {
  return `mailchute: the sandbox of this run does not reach ${where}; network.allow names what it reaches\n`;
}
