/** `/metrics` of the web server, over real HTTP: off without its token, and with it only for who has it. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, test } from "vitest";
import { MetricsPage, readToken } from "../../../src/parts/web/metrics-page.ts";
import { readExposition } from "../../support/exposition.ts";
import { newPool } from "../../support/pool.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";
import { openWeb } from "./open-web.ts";

const TOKEN = "0123456789abcdef0123";
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

function pageOf(make = () => "mailchute_up 1\n") {
  let nowMs = 0;
  let madeCount = 0;
  const page = new MetricsPage({
    token: TOKEN,
    make: () => {
      madeCount++;
      return make();
    },
    nowMs: () => nowMs,
  });
  return {
    page,
    get madeCount() {
      return madeCount;
    },
    pass: (ms: number) => (nowMs += ms),
  };
}

it("is not there without its token file, not even for a session", async () => {
  const web = await openWeb(newPool().state);
  expect((await web.ask({ path: "/metrics", headers: bearer(TOKEN) })).status).toBe(404);
  expect((await web.ask({ path: "/metrics", headers: await web.signIn() })).status).toBe(404);
});

it("opens for its token and for no session, and its token opens nothing else", async () => {
  const { page } = pageOf();
  const web = await openWeb(newPool().state, undefined, undefined, false, {}, undefined, page);
  const get = async (headers: Record<string, string>, method = "GET", path = "/metrics") =>
    (await web.ask({ path, method, headers })).status;
  expect(await get(bearer(TOKEN))).toBe(200);
  expect(await get({})).toBe(401);
  expect(await get(bearer(`${TOKEN}x`))).toBe(401);
  expect(await get({ authorization: `Basic ${TOKEN}` })).toBe(401);
  expect(await get(await web.signIn())).toBe(401);
  expect(await get({ ...bearer(TOKEN), host: "evil.example" })).toBe(421);
  expect(await get({ ...bearer(TOKEN), origin: "http://evil.example" })).toBe(403);
  expect(await get({ ...bearer(TOKEN), "sec-fetch-site": "cross-site" })).toBe(403);
  for (const method of ["HEAD", "POST", "PUT", "DELETE"])
    expect(await get(bearer(TOKEN), method), method).toBe(405);
  expect(await get(bearer(TOKEN), "GET", "/metrics/")).toBe(404);
  expect(await get(bearer(TOKEN), "GET", "/api/page?path=%2F")).toBe(401);
  const { headers, body } = await web.ask({ path: "/metrics", headers: bearer(TOKEN) });
  expect(headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(headers["set-cookie"]).toBeUndefined();
  expect(body).toBe("mailchute_up 1\n");
});

test("after thirty wrong tokens in a minute others are told to wait, and the right one passes", () => {
  const { page, pass } = pageOf();
  const status = (token: string): number => page.answer("GET", bearer(token)).status;
  for (let n = 0; n < 30; n++) expect(status("wrong")).toBe(401);
  expect(status("wrong")).toBe(429);
  expect(status(TOKEN)).toBe(200);
  pass(60_000);
  expect(status("wrong")).toBe(401);
});

test("numbers are made at most once a second, and none are shown that could not be made", () => {
  let isBroken = false;
  const seen = pageOf(() => {
    if (isBroken) throw new Error("gone");
    return "x 1\n";
  });
  const ask = () => seen.page.answer("GET", bearer(TOKEN));
  for (let n = 0; n < 5; n++) expect(ask().body).toBe("x 1\n");
  expect(seen.madeCount).toBe(1);
  seen.pass(1000);
  isBroken = true;
  expect(ask()).toMatchObject({ status: 503, body: "the tree cannot be read: gone\n" });
});

test.each([
  ["too short", "0123456789abcde\n", 0o600],
  ["two lines", `${TOKEN}\n${TOKEN}\n`, 0o600],
  ["nothing", "", 0o600],
  ["for all to read", TOKEN, 0o604],
  ["for all to change", TOKEN, 0o602],
])("a token file is refused and not shown: %s", (_what, text, mode) => {
  const path = join(tempDir(), "token");
  fs.writeFileSync(path, text);
  fs.chmodSync(path, mode);
  expect(() => readToken(path)).toThrow(/--metrics-token-file/);
  expect(() => readToken(path)).not.toThrow(/0123456789/);
});

test("`web --metrics-token-file` serves the numbers of the pool, and 503 when its tree is gone", async () => {
  const pool = newPool();
  fs.mkdirSync(pool.inbox, { recursive: true });
  const file = join(pool.dir, "token");
  fs.writeFileSync(file, `${TOKEN}\n`, { mode: 0o640 });
  const args = ["web", "--port", "0", "--json", "--metrics-token-file"];
  expect(await pool.run([...args, join(pool.dir, "none")])).toMatchObject({ code: 2 });
  const running = pool.spawn([...args, file]);
  await waitFor(() => running.stdout().includes("\n"), { what: "its link" });
  const { port } = JSON.parse(running.stdout()) as { port: number };
  const get = () => fetch(`http://127.0.0.1:${port}/metrics`, { headers: bearer(TOKEN) });
  const answer = await get();
  expect(answer.status).toBe(200);
  expect(readExposition(await answer.text()).get("mailchute_up")).toBe(0);
  fs.renameSync(pool.state, `${pool.state}-away`);
  await waitFor(async () => (await get()).status === 503, { what: "that its tree is gone" });
  running.child.kill("SIGTERM");
  expect((await running.ended).exitCode).toBe(0);
});
