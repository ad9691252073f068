/** `mailchute web` as its user starts it: the link that it prints, its end, and a port that is taken. */
import http from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { isGone } from "../../../src/host/identity.ts";
import type { Page } from "../../../src/parts/web/page.ts";
import { newPool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";

it("prints a link that opens the pages, and ends by SIGTERM", async () => {
  const pool = newPool();
  pool.drop("one", { exec: ["true"] });
  const web = pool.spawn(["web", "--port", "0", "--json"]);
  await waitFor(() => web.stdout().endsWith("\n") && web.stderr().endsWith("\n"), {
    what: "its link",
  });
  const { link, port, pid } = JSON.parse(web.stdout()) as {
    link: string;
    port: number;
    pid: number;
  };
  expect(link).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:${port}/#code=[\\w-]{32}$`));
  expect(pid).toBe(web.pid);
  expect(web.stderr()).toContain("open this link within a minute");
  const origin = `http://127.0.0.1:${port}`;
  const shell = await fetch(`${origin}/tasks/one`);
  expect(await shell.text()).toContain('<script type="module" src="/app.js"></script>');
  expect((await fetch(`${origin}/app.css`)).headers.get("content-type")).toContain("text/css");
  const answer = await fetch(`${origin}/api/session`, {
    method: "POST",
    headers: { "content-type": "application/json", origin },
    body: JSON.stringify({ code: link.split("#code=")[1] }),
  });
  const { key } = (await answer.json()) as { key: string };
  const [cookie = ""] = answer.headers.get("set-cookie")?.split(";") ?? [];
  const headers = { cookie, "x-mailchute-key": key };
  const page = (await (await fetch(`${origin}/api/page?path=/tasks`, { headers })).json()) as Page;
  expect(JSON.stringify(page.blocks)).toContain('"to":"/tasks/one"');
  web.child.kill("SIGTERM");
  expect(await web.ended).toEqual({ exitCode: 0, signal: null });
});

it("says when its port is taken, and what to do", async () => {
  const pool = newPool();
  const server = http.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const { code, stderr } = await pool.run(["web", "--port", String(port)]);
  expect(code).toBe(2);
  expect(stderr).toContain(`cannot listen on port ${port} of 127.0.0.1: another program uses it`);
  expect(stderr).toContain("do: name another one with --port; 0 takes any free one");
});

it("runs in the background with --detach, gives links, and ends with --stop", async () => {
  const pool = newPool();
  const taken = await pool.run(["web", "--detach", "--port", "0", "--origin", "nonsense"]);
  expect(taken.code).toBe(2);
  expect(taken.stderr).toContain("--origin");
  const started = await pool.run(["web", "--detach", "--port", "0", "--json"]);
  expect(started.code, started.stderr).toBe(0);
  const { link, pid } = JSON.parse(started.stdout) as { link: string; pid: number };
  const { origin } = new URL(link);
  expect((await fetch(`${origin}/tasks`)).status).toBe(200);
  expect((await pool.run(["web", "--link"])).stdout).toContain(origin);
  const stopped = await pool.run(["web", "--stop"]);
  expect(stopped.stdout).toBe(`stopped: port ${new URL(origin).port}\n`);
  await waitFor(() => isGone(pid), { what: "its end" });
  expect((await pool.run(["web", "--stop"])).code).toBe(2);
});
