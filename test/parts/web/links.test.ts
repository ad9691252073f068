/** Signed links of messages: what they show, what they do, and what is refused, with a real server behind a real proxy's headers. */
import fs from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { expect, it } from "vitest";
import { treeIdOf } from "../../../src/host/tree-id.ts";
import { linkKey } from "../../../src/links/link-key.ts";
import { newLink } from "../../../src/links/new-link.ts";
import { LINK_MS, type SignedLink, signLink } from "../../../src/links/signed-link.ts";
import { QuestionStore } from "../../../src/questions/question-store.ts";
import { newPool, type Pool, readJson } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { newReceiver } from "../notify/receiver.ts";

const URL_OF_POOL = "https://pool.example";
const CONFIG = `durability: process\nretry: {max_attempts: 1}\nweb: {public_url: "${URL_OF_POOL}"}\n`;

interface Answer {
  status: number;
  body: string;
  headers: http.IncomingHttpHeaders;
}

type Ask = (link: string, form?: string, headers?: Record<string, string>) => Promise<Answer>;

/** `mailchute web` behind a proxy for pool.example. */
async function served(
  pool: Pool,
  ...more: string[]
): Promise<{ ask: Ask; kill: () => Promise<void> }> {
  const line = ["web", "--port", "0", "--json", "--behind-proxy", "--origin", URL_OF_POOL];
  const web = pool.spawn([...line, ...more]);
  await waitFor(() => web.stdout().endsWith("\n"), { what: "its link" });
  const { port } = JSON.parse(web.stdout()) as { port: number };
  const ask: Ask = (link, form, headers = {}) =>
    new Promise((resolve, reject) => {
      const path = link.slice(URL_OF_POOL.length);
      const posted = { origin: URL_OF_POOL, "content-type": "application/x-www-form-urlencoded" };
      const request = http.request(
        {
          host: "127.0.0.1",
          port,
          path,
          agent: false,
          method: form === undefined ? "GET" : "POST",
          headers: { host: "pool.example", ...(form === undefined ? {} : posted), ...headers },
        },
        (response) => {
          let body = "";
          response.setEncoding("utf8").on("data", (text: string) => (body += text));
          response.on("end", () =>
            resolve({ status: response.statusCode ?? 0, body, headers: response.headers }),
          );
        },
      );
      request.on("error", reject);
      request.end(form);
    });
  const kill = async (): Promise<void> => {
    web.child.kill("SIGKILL");
    await web.ended;
  };
  return { ask, kill };
}

async function withFailure(config = CONFIG): Promise<Pool> {
  const pool = newPool({ config });
  pool.drop("bad", { title: "<b>Send</b>", exec: ["false"] });
  await pool.run(["run", "--drain"]);
  return pool;
}

const linkFor = (pool: Pool, failed = ["bad"]): string =>
  newLink(URL_OF_POOL, pool.state, { failed, nowMs: Date.now() });

const RETRY = "verb=retry&id=bad";

it("a message has a link; a look at it changes nothing, and one click retries the task, once", async () => {
  const receiver = await newReceiver();
  const pool = await withFailure(
    `${CONFIG}notify: [{name: phone, url: "${receiver.url}/topic", format: ntfy}]\n`,
  );
  await waitFor(() => receiver.received.length > 0, { what: "the message" });
  const { body = "" } = receiver.received[0] ?? {};
  const { click: link, message } = JSON.parse(body) as { click: string; message: string };
  expect(message).toContain(link);
  const { ask } = await served(pool);
  for (let looks = 0; looks < 2; looks++) {
    const seen = await ask(link);
    expect(seen).toMatchObject({ status: 200 });
    expect(seen.body).toContain("bad has failed");
    expect(seen.headers["content-security-policy"]).toContain("form-action 'self'");
    expect(seen.body).not.toContain("<script");
  }
  expect(pool.errors()).toHaveLength(1);
  const acted = await ask(link, RETRY);
  expect(acted).toMatchObject({ status: 200, body: expect.stringContaining("1 task retried") });
  expect(fs.existsSync(join(pool.inbox, "bad.json"))).toBe(true);
  await pool.run(["run", "--drain"]);
  // The same link on another device.
  expect(await ask(link, RETRY)).toMatchObject({
    status: 403,
    body: expect.stringContaining("this link was used before"),
  });
  expect(fs.existsSync(join(pool.failed, "bad_error.json"))).toBe(true);
});

it("the page that follows an action goes on with a link of its own, for what else waits", async () => {
  const pool = await withFailure();
  new QuestionStore(pool.state).ask({
    id: "colour",
    question: "Blue & green?",
    context: "",
    who: "",
    agents: [],
    expects: "text",
    asked_at_ms: Date.now(),
    ends_at_ms: null,
  });
  const { ask } = await served(pool);
  const first = linkFor(pool);
  const seen = await ask(first, RETRY);
  expect(seen.body).toContain("Blue &amp; green?");
  const next = `${URL_OF_POOL}${/action="([^"]+)"/.exec(seen.body)?.[1]}`;
  expect(next).not.toBe(first);
  expect(await ask(next, "verb=answer&id=colour&text=blue")).toMatchObject({ status: 200 });
  expect(new QuestionStore(pool.state).answerOf("colour")).toContain("blue");
  expect(await ask(next, "verb=pause&id=")).toMatchObject({ status: 403 });
  const files = fs
    .readdirSync(join(pool.state, "web/used"))
    .filter((name) => name.endsWith(".json"));
  const log = files.map(
    (name) => readJson<{ what: string }>(join(pool.state, "web/used", name))?.what,
  );
  expect(new Set(log)).toEqual(new Set(["answer colour", "retry bad"]));
});

it("what is forged, late, of another tree, from another page or for another action is refused", async () => {
  const pool = await withFailure();
  const { ask } = await served(pool);
  const good: SignedLink = {
    nonce: "n1",
    tree: treeIdOf(pool.state) ?? "",
    until_ms: Date.now() + LINK_MS / 2,
    failed: ["bad"],
  };
  const signed = (more: Partial<SignedLink>, key = linkKey(pool.state)): string =>
    `${URL_OF_POOL}/do/${signLink({ ...good, ...more }, key)}`;
  const link = signed({});
  const forged = {
    "another letter": link.replace(/.$/, (c) => (c === "A" ? "B" : "A")),
    "another body": link.replace("/do/", "/do/A"),
    "another key": signed({}, "another"),
    nothing: `${URL_OF_POOL}/do/`,
    late: signed({ until_ms: Date.now() - 1 }),
    "too far ahead": signed({ until_ms: Date.now() + 2 * LINK_MS }),
    "another tree": signed({ tree: "1:2" }),
  };
  for (const [name, one] of Object.entries(forged))
    for (const form of [undefined, RETRY])
      expect((await ask(one, form)).status, `${name}, ${form}`).toBe(403);
  expect((await ask(link, RETRY, { origin: "https://evil.example" })).status).toBe(403);
  expect((await ask(link, RETRY, { origin: "null" })).status).toBe(403);
  expect((await ask(link, RETRY, { host: "evil.example" })).status).toBe(421);
  expect((await ask(link, RETRY, { "content-type": "text/plain" })).status).toBe(415);
  for (const form of [
    "verb=land&id=bad",
    "verb=retry&id=other",
    "verb=cancel&id=bad",
    "verb=workers&number=0",
    "",
  ])
    expect((await ask(link, form)).status, form).toBe(400);
  expect(pool.errors()).toHaveLength(1);
  expect((await ask(link, RETRY)).status).toBe(200);
});

it("a server that died in the middle of an action leaves the link good; one that ended it does not", async () => {
  const pool = await withFailure();
  const one = await served(pool);
  const link = linkFor(pool);
  expect((await one.ask(link, RETRY)).status).toBe(200);
  const dir = join(pool.state, "web/used");
  const [file = ""] = fs.readdirSync(dir).filter((name) => name.endsWith(".json"));
  await one.kill();
  const two = await served(pool);
  expect((await two.ask(link, RETRY)).status).toBe(403);
  // As the first server would have left it, had it died before its end.
  const used = readJson<Record<string, unknown>>(join(dir, file));
  fs.writeFileSync(join(dir, file), JSON.stringify({ ...used, outcome: null }));
  // The task waits already, so nothing is done twice.
  expect((await two.ask(link, RETRY)).status).toBe(409);
  expect(fs.readdirSync(pool.inbox).filter((name) => name.startsWith("bad"))).toEqual(["bad.json"]);
});

it("eight requests at once act once", async () => {
  const pool = await withFailure();
  const { ask } = await served(pool);
  const link = linkFor(pool);
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask(link, RETRY)));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  expect(answers.filter(({ status }) => status === 403)).toHaveLength(7);
});

it("the key is for its owner only; --read-only acts on nothing, and without public_url there are no links", async () => {
  const pool = await withFailure();
  const link = linkFor(pool);
  const path = join(pool.state, "web/link-key.json");
  expect(fs.statSync(path).mode & 0o777).toBe(0o600);
  const { ask } = await served(pool, "--read-only");
  expect((await ask(link)).status).toBe(200);
  expect((await ask(link, RETRY)).status).toBe(403);
  fs.chmodSync(path, 0o644);
  expect(() => linkKey(pool.state)).toThrow("only its owner can read");
  const unchecked = await ask(link);
  expect(unchecked.status).toBe(503);
  expect(unchecked.body).not.toContain("link-key");
  const off = await withFailure("durability: process\nretry: {max_attempts: 1}\n");
  expect((await (await served(off)).ask(linkFor(off))).status).toBe(404);
});

it("`web --link` makes a new link to a server in the background; each works once, and a run of an agent gets none", async () => {
  const env: Record<string, string> = {};
  const pool = newPool({ env });
  expect(await pool.run(["web", "--link"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("no mailchute web runs on this tree"),
  });
  const web = pool.spawn(["web", "--port", "0", "--json"]);
  await waitFor(() => web.stdout().endsWith("\n"), { what: "its link" });
  const { port } = JSON.parse(web.stdout()) as { port: number };
  const codeOf = async (): Promise<string> => {
    const { stdout } = await pool.run(["web", "--link"]);
    const link = new URL(stdout.trim());
    expect(link.origin).toBe(`http://127.0.0.1:${port}`);
    return link.hash.replace("#code=", "");
  };
  const exchange = async (code: string): Promise<number> => {
    const origin = `http://127.0.0.1:${port}`;
    const body = JSON.stringify({ code });
    const headers = { origin, "content-type": "application/json" };
    return (await fetch(`${origin}/api/session`, { method: "POST", headers, body })).status;
  };
  const [first, second] = [await codeOf(), await codeOf()];
  expect(await exchange(first)).toBe(403);
  expect(await exchange(second)).toBe(200);
  expect(await exchange(second)).toBe(403);
  const codes = join(pool.state, "web/codes");
  const late = await codeOf();
  const [file = ""] = fs.readdirSync(codes).filter((name) => name.endsWith(".json"));
  expect(fs.statSync(join(codes, file)).mode & 0o777).toBe(0o600);
  fs.writeFileSync(join(codes, file), JSON.stringify({ code: late, at_ms: Date.now() - 60_001 }));
  expect(await exchange(late)).toBe(403);
  const inRun = { MAILCHUTE_DROP: join(pool.state, "drops/x"), MAILCHUTE_STATE: pool.state };
  Object.assign(env, inRun);
  const refused = await pool.run(["web", "--link"]);
  expect(refused.stderr).toContain("a run of an agent may not");
  for (const name of Object.keys(inRun)) delete env[name];
  web.child.kill("SIGTERM");
  await web.ended;
  expect((await pool.run(["web", "--link"])).code).toBe(2);
});
