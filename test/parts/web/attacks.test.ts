/** What the server of the pages refuses, over real HTTP: other hosts, pages and methods, wrong secrets, paths out of the tree. */
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Sessions } from "../../../src/parts/web/sessions.ts";
import { newPool } from "../../support/pool.ts";
import { exchange, openWeb, pagePath, type Request } from "./open-web.ts";

const ours = (port: number): Record<string, string> => ({ host: `127.0.0.1:${port}` });

describe("data", () => {
  it("needs the cookie and the key, both and of one session", async () => {
    const web = await openWeb(newPool().state);
    const one = await web.signIn();
    const two = await web.signIn();
    const status = async (headers: Record<string, string>): Promise<number> =>
      (await web.ask({ path: pagePath("/"), headers })).status;
    expect(await status(one)).toBe(200);
    expect(await status(two)).toBe(200);
    expect(await status({})).toBe(401);
    expect(await status({ cookie: one["cookie"] ?? "" })).toBe(401);
    expect(await status({ "x-mailchute-key": one["x-mailchute-key"] ?? "" })).toBe(401);
    expect(await status({ ...one, "x-mailchute-key": two["x-mailchute-key"] ?? "" })).toBe(401);
    expect(await status({ ...one, cookie: "mailchute_1=x" })).toBe(401);
    // Another cookie of this name, such as one with another path, does not sign the browser out.
    const foreign = (one["cookie"] ?? "").replace(/=.*/, "=x");
    for (const other of [two["cookie"], foreign]) {
      expect(await status({ ...one, cookie: `${one["cookie"]}; ${other}` })).toBe(200);
      expect(await status({ ...one, cookie: `${other}; ${one["cookie"]}` })).toBe(200);
      expect(await status({ ...one, cookie: other ?? "" })).toBe(401);
    }
  });

  it("is in no answer to a request without a session", async () => {
    const pool = newPool();
    pool.drop("secret-name", { exec: ["true"] });
    const web = await openWeb(pool.state);
    for (const path of [
      "/",
      "/tasks",
      "/tasks/secret-name",
      "/app.js",
      "/app.css",
      "/index.html",
      "/none",
    ])
      expect((await web.ask({ path })).body).not.toContain("secret-name");
  });
});

describe("a link", () => {
  it("works once, and for a minute", async () => {
    let nowMs = 0;
    const web = await openWeb(newPool().state, new Sessions(() => nowMs));
    const [, code = ""] = web.newLink().split("#code=");
    expect((await web.ask(exchange(web.port, code))).status).toBe(200);
    expect((await web.ask(exchange(web.port, code))).status).toBe(403);
    const [, late = ""] = web.newLink().split("#code=");
    nowMs += 60_000;
    expect((await web.ask(exchange(web.port, late))).status).toBe(403);
  });

  it("the one before works no longer when a new one is made", async () => {
    const web = await openWeb(newPool().state);
    const [before, after] = [web.sessions.newCode(), web.sessions.newCode()];
    expect((await web.ask(exchange(web.port, before))).status).toBe(403);
    expect((await web.ask(exchange(web.port, after))).status).toBe(200);
  });

  it("is right also after many wrong codes, which have to wait", async () => {
    let nowMs = 0;
    const web = await openWeb(newPool().state, new Sessions(() => nowMs));
    const right = web.sessions.newCode();
    const wrong = async (): Promise<number> => (await web.ask(exchange(web.port, "wrong"))).status;
    for (let n = 0; n < 5; n++) expect(await wrong()).toBe(403);
    expect(await wrong()).toBe(429);
    expect((await web.ask(exchange(web.port, right))).status).toBe(200);
    nowMs += 60_000;
    expect(await wrong()).toBe(403);
  });

  it("its key is right also after many wrong ones, which have to wait", async () => {
    let nowMs = 0;
    const web = await openWeb(newPool().state, new Sessions(() => nowMs));
    const right = await web.signIn();
    const ask = async (headers: Record<string, string>): Promise<number> =>
      (await web.ask({ path: pagePath("/tasks"), headers })).status;
    const wrong = { ...right, "x-mailchute-key": "wrong" };
    for (let n = 0; n < 30; n++) expect(await ask(wrong)).toBe(401);
    expect(await ask(wrong)).toBe(429);
    expect(await ask({ "x-mailchute-key": "wrong" })).toBe(429);
    expect(await ask(right)).toBe(200);
    expect(await ask({})).toBe(401);
    nowMs += 60_000;
    expect(await ask(wrong)).toBe(401);
  });

  it("the oldest session ends when there are more than twenty", async () => {
    const web = await openWeb(newPool().state);
    const first = await web.signIn();
    for (let n = 0; n < 20; n++) await web.signIn();
    expect((await web.ask({ path: pagePath("/"), headers: first })).status).toBe(401);
  });

  it("sets a cookie that scripts and other sites do not get", async () => {
    const web = await openWeb(newPool().state);
    const { headers } = await web.ask(exchange(web.port, web.sessions.newCode()));
    expect(headers["set-cookie"]?.[0]).toMatch(
      new RegExp(`^mailchute_${web.port}=[\\w-]{32}; HttpOnly; SameSite=Strict; Path=/$`),
    );
  });
});

describe("a request is refused", () => {
  it.each([
    "evil.example",
    "127.evil.example",
    "127.0.0.1",
    "127.0.0.1:1",
    "127.0.0.1.evil.example:PORT",
    "localhost.evil.example:PORT",
    "LOCALHOST:PORT",
    "0.0.0.0:PORT",
    "127.1:PORT",
    "[::1]:PORT",
    "127.0.0.1:PORT@evil.example",
    "127.0.0.1:PORT, evil.example",
  ])("with the host %j, which a foreign name could have", async (host) => {
    const web = await openWeb(newPool().state);
    const headers = { ...(await web.signIn()), host: host.replace("PORT", String(web.port)) };
    for (const path of ["/", "/app.js", pagePath("/")])
      expect((await web.ask({ path, headers })).status).toBe(421);
    const session = exchange(web.port, web.sessions.newCode());
    const asked = { ...session, headers: { ...session.headers, host: headers.host } };
    expect((await web.ask(asked)).status).toBe(421);
  });

  it("from another page", async () => {
    const web = await openWeb(newPool().state);
    const signedIn = await web.signIn();
    const refused: Record<string, string>[] = [
      { origin: "http://evil.example" },
      { origin: "null" },
      { origin: `http://127.0.0.1:${web.port + 1}` },
      { origin: `https://127.0.0.1:${web.port}` },
      { origin: `http://localhost:${web.port}` },
      { "sec-fetch-site": "same-site" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "none" },
    ];
    for (const headers of refused) {
      const asked = { path: pagePath("/"), headers: { ...signedIn, ...headers } };
      expect((await web.ask(asked)).status).toBe(403);
      const session = exchange(web.port, web.sessions.newCode());
      const sent = { ...session, headers: { ...session.headers, ...headers } };
      expect((await web.ask(sent)).status).toBe(403);
    }
    const { origin, ...withoutOrigin } = exchange(web.port, web.sessions.newCode()).headers ?? {};
    expect(origin).toBeDefined();
    const session = { ...exchange(web.port, web.sessions.newCode()), headers: withoutOrigin };
    expect((await web.ask(session)).status).toBe(403);
  });

  it("with another method", async () => {
    const web = await openWeb(newPool().state);
    const headers = { ...(await web.signIn()), origin: `http://127.0.0.1:${web.port}` };
    const asked: Request[] = ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"].flatMap(
      (method) => ["/", "/tasks", pagePath("/")].map((path) => ({ method, path, headers })),
    );
    asked.push({ path: "/api/session", headers }, { method: "PUT", path: "/api/session", headers });
    for (const request of asked) expect((await web.ask(request)).status).toBe(405);
    expect((await web.ask({ method: "HEAD", path: "/" })).body).toBe("");
  });

  it("with another type of body, a large body, or a body that is no code", async () => {
    const web = await openWeb(newPool().state);
    const code = web.sessions.newCode();
    const session = exchange(web.port, code);
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json;x"]) {
      const headers = { ...session.headers, "content-type": type };
      expect((await web.ask({ ...session, headers })).status).toBe(415);
    }
    const large = await web.ask({
      ...session,
      body: JSON.stringify({ code, more: "x".repeat(5000) }),
    });
    expect(large.status).toBe(413);
    for (const body of ["", "{", "null", "[]", '{"code":7}', '{"code":null}'])
      expect([403, 429]).toContain((await web.ask({ ...session, body })).status);
    expect((await web.ask(session)).status).toBe(200);
  });
});

it.each([
  ["its headers", "GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nX: "],
  [
    "its body",
    "POST /api/session HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nOrigin: http://127.0.0.1:PORT\r\n" +
      "Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{",
  ],
  ["nothing", ""],
])("a request that never ends is ended: it has sent %s", async (_what, text) => {
  const web = await openWeb(newPool().state, new Sessions(), 300);
  const socket = net.connect(web.port, "127.0.0.1");
  socket.write(text.replaceAll("PORT", String(web.port)));
  let got = "";
  socket.setEncoding("utf8").on("data", (part: string) => (got += part));
  await once(socket, "close");
  expect(got).toMatch(/^HTTP\/1\.1 408 /);
  expect((await web.ask({ path: "/" })).status).toBe(200);
});

/** Spellings of `../secret.txt`, which stands beside the state tree and in each folder above a task's files. */
const UP = [
  "..",
  "%2e%2e",
  "%2E.",
  ".%2e",
  "..%2f",
  "%252e%252e",
  "..%5c",
  "....//",
  "..;",
  "%c0%ae%c0%ae",
];
const SPELLINGS = UP.flatMap((up) => [
  `/${up}/secret.txt`,
  `/${up}/${up}/secret.txt`,
  `/tasks/${up}/${up}/secret.txt`,
  `/tasks/${up}%2fsecret.txt`,
  `/tasks/${up}%00`,
]);

it("no spelling of a path leads to a file that is not shown", async () => {
  const pool = newPool();
  pool.drop("one", { exec: ["true"] });
  const hidden = "content-that-is-not-shown";
  for (const dir of [pool.dir, pool.state, pool.mailbox, pool.inbox])
    fs.writeFileSync(join(dir, "secret.txt"), hidden);
  const web = await openWeb(pool.state);
  const headers = { ...(await web.signIn()), ...ours(web.port) };
  expect(SPELLINGS.length).toBeGreaterThanOrEqual(50);
  for (const path of SPELLINGS) {
    const plain = await web.ask({ path, headers });
    expect(plain.body).not.toContain(hidden);
    const page = await web.ask({ path: pagePath(path), headers });
    expect([200, 404]).toContain(page.status);
    expect(page.body).not.toContain(hidden);
    const file = await web.ask({ path: pagePath(`/tasks/one?file=${path}`), headers });
    expect(file.status).toBe(200);
    expect(file.body).not.toContain(hidden);
  }
  for (const path of ["//evil.example/", "http://evil.example/", "/\\evil.example", "", "tasks"])
    expect((await web.ask({ path: pagePath(path), headers })).status).toBe(404);
});

it("each answer forbids frames, other scripts and copies in a cache", async () => {
  const web = await openWeb(newPool().state);
  const signedIn = await web.signIn();
  const asked: Request[] = [
    { path: "/" },
    { path: "/app.js" },
    { path: "/none" },
    { path: pagePath("/") },
    { path: pagePath("/"), headers: signedIn },
    { path: "/", headers: { host: "evil.example" } },
    exchange(web.port, web.sessions.newCode()),
  ];
  for (const request of asked) {
    const { headers } = await web.ask(request);
    expect(headers["content-security-policy"]).toMatch(
      /^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'; require-trusted-types-for 'script'$/,
    );
    expect(headers).toMatchObject({
      "x-frame-options": "DENY",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
      "cache-control": "no-store",
    });
    expect(headers["access-control-allow-origin"]).toBeUndefined();
  }
});
