/** Streams of events over real HTTP: what comes when files change, what a browser gets that comes again, and what is limited. */
import fs from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Allowance } from "../../../src/parts/web/allowance.ts";
import type { Page } from "../../../src/parts/web/page.ts";
import { newPool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { openWeb, type Web } from "./open-web.ts";

interface Event {
  name: string;
  id: string | undefined;
  data: Partial<Page> & { count?: number; changed?: [number, unknown][] };
}

/** Opens a stream as the script of a page does. */
async function follow(
  web: Web,
  path: string,
  lastId = "",
  session?: Readonly<Record<string, string>>,
) {
  const headers = { ...(session ?? (await web.signIn())), "last-event-id": lastId };
  const events: Event[] = [];
  const request = http.get({
    host: "127.0.0.1",
    port: web.port,
    path: `/api/stream?path=${encodeURIComponent(path)}`,
    headers,
    agent: false,
  });
  request.on("error", () => undefined);
  onTestFinished(() => void request.destroy());
  const response = await new Promise<http.IncomingMessage>((resolve) => {
    request.once("response", resolve);
  });
  let rest = "";
  response.on("error", () => undefined);
  response.setEncoding("utf8").on("data", (part: string) => {
    const texts = (rest + part).split("\n\n");
    rest = texts.pop() ?? "";
    events.push(...texts.map(readEvent));
  });
  return {
    events,
    response,
    end: () => request.destroy(),
    /** Waits for an event whose data has this text. */
    has: (text: string) =>
      waitFor(() => events.some(({ data }) => JSON.stringify(data).includes(text)), { what: text }),
  };
}

function readEvent(text: string): Event {
  const fields = new Map(
    text.split("\n").map((line) => [line.split(": ")[0], line.slice(line.indexOf(": ") + 2)]),
  );
  const data = JSON.parse(fields.get("data") ?? "null") as Event["data"];
  return { name: fields.get("event") ?? "", id: fields.get("id"), data };
}

it("the whole page comes first, then the blocks that have changed", async () => {
  const pool = newPool();
  const web = await openWeb(pool.state);
  const { events, has, response } = await follow(web, "/tasks");
  expect(response.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
  expect(response.headers["content-security-policy"]).toContain("default-src 'none'");
  await has("no task is waiting");
  expect(events.map(({ name }) => name)).toEqual(["page"]);
  const count = events[0]?.data.blocks?.length ?? 0;
  pool.drop("fresh", { exec: ["true"] });
  await has('"fresh"');
  const [, part] = events;
  expect(part).toMatchObject({ name: "part" });
  expect(part?.data.changed?.length).toBeLessThan(count + 1);
  expect(part?.id).not.toBe(events[0]?.id);
});

it("a log of the page that is open is followed", async () => {
  const pool = newPool();
  await pool.start();
  const go = join(pool.dir, "go");
  pool.drop("slow", {
    exec: ["sh", "-c", `echo first; until test -e ${go}; do sleep 0.1; done; echo second`],
  });
  const web = await openWeb(pool.state);
  const { has } = await follow(web, "/tasks/slow");
  await has("first");
  fs.writeFileSync(go, "");
  await has("second");
  await has('["state",{"look":"good","word":"done"}]');
  await pool.stop();
});

it("a browser that comes again gets the page only when it has changed", async () => {
  const pool = newPool();
  const web = await openWeb(pool.state);
  const one = await follow(web, "/tasks");
  await one.has("no task is waiting");
  one.end();
  const lastId = one.events[0]?.id ?? "";
  expect(lastId).toMatch(/^[\w-]{43}$/);
  const same = await follow(web, "/tasks", lastId);
  await waitFor(() => same.events.length > 0, { what: "its first event" });
  expect(same.events[0]).toMatchObject({ name: "same", id: lastId });
  same.end();
  pool.drop("fresh", { exec: ["true"] });
  const other = await follow(web, "/tasks", lastId);
  await other.has('"fresh"');
  expect(other.events[0]?.name).toBe("page");
});

it("a tree that is gone, and its return, come as events", async () => {
  const pool = newPool();
  const web = await openWeb(pool.state);
  const { events, has } = await follow(web, "/tasks");
  await has("no task is waiting");
  fs.renameSync(pool.state, `${pool.state}-away`);
  await has("is gone");
  expect(events.at(-1)?.data.health?.state).toBe("unreadable");
  fs.renameSync(`${pool.state}-away`, pool.state);
  await waitFor(() => events.at(-1)?.data.health?.state === "none", { what: "its return" });
});

it("a supervisor that is killed is said on every page", async () => {
  const pool = newPool();
  const { child } = await pool.start();
  const web = await openWeb(pool.state);
  const one = await follow(web, "/tasks");
  await one.has('"state":"live"');
  child.kill("SIGKILL");
  await one.has("dead: pid");
  await pool.killAll();
});

it("a stream needs a session, and there are at most 64", async () => {
  const web = await openWeb(newPool().state);
  const path = "/api/stream?path=/";
  expect((await web.ask({ path })).status).toBe(401);
  const session = await web.signIn();
  expect((await web.ask({ path: "/api/stream?path=/none", headers: session })).status).toBe(404);
  const open = await Promise.all(Array.from({ length: 64 }, () => follow(web, "/", "", session)));
  const refused = await web.ask({ path, headers: session });
  expect([refused.status, refused.body]).toEqual([503, expect.stringContaining("too many")]);
  for (const one of open) one.end();
  await waitFor(async () => (await follow(web, "/", "", session)).response.statusCode === 200, {
    what: "a free stream",
  });
});

it("what pages may take is a share of the time, and some for what comes after a rest", () => {
  const allowance = new Allowance(0.02, 200, 0);
  expect(allowance.readyInMs(0, 0)).toBe(0);
  allowance.use(250, 0);
  expect(allowance.readyInMs(0, 0)).toBe(2500);
  expect(allowance.readyInMs(0.5, 0)).toBe(7500);
  expect(allowance.readyInMs(0, 2500)).toBe(0);
  allowance.use(0, 1e9);
  expect(allowance.readyInMs(1, 1e9)).toBe(0);
  allowance.use(201, 1e9);
  expect(allowance.readyInMs(0, 1e9)).toBeCloseTo(50);
});
