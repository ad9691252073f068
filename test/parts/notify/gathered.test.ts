/** What a message says: pure rules, without a pool. */
import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { explainBadNotify, type NotifySettings } from "../../../src/core/notify-settings.ts";
import { composeMessage, type Gathered, gather } from "../../../src/parts/notify/gathered.ts";
import { BadTarget, requestFor } from "../../../src/parts/notify/request.ts";
import {
  mayBeNews,
  type News,
  newsOfAlert,
  newsOfEvent,
} from "../../../src/parts/notify/topics.ts";

function gatherAll(news: readonly News[]): Gathered {
  return news.reduce<Gathered | undefined>(
    (all, one) => gather(all, one, 1000),
    undefined,
  ) as Gathered;
}

const MESSAGE = composeMessage(
  "phone-1-x",
  gatherAll([{ topic: "failed", text: "a: exit 1" }]),
  "shop",
  0,
);
const FROM = { env: {}, host: "vm", stateDir: "/srv/state", nowMs: 1_700_000_000_000 };
const target = (more: Partial<NotifySettings>): NotifySettings => ({
  name: "x",
  url: "http://h/t",
  ...more,
});

describe("a message", () => {
  it("names the first of a flood, and counts the others", () => {
    const flood = Array.from(
      { length: 500 },
      (_, i): News => ({ topic: "failed", text: `t-${i}: exit 1` }),
    );
    const { title, text, counts } = composeMessage("id", gatherAll(flood), "shop", 0);
    expect(title).toBe("mailchute shop: 500 failed");
    expect(counts).toEqual({ failed: 500 });
    expect(text.split("\n")).toHaveLength(9);
    expect(text).toContain("failed: t-0: exit 1\n");
    expect(text).toMatch(/failed: and 492 more: mailchute ls --state-is failed$/);
  });

  it("begins with what needs a person most", () => {
    const news: News[] = [
      { topic: "failed", text: "a: exit 1" },
      { topic: "quota", text: "codex until 16:40" },
      { topic: "question", text: "Drop the column?" },
    ];
    const { title, text } = composeMessage("id", gatherAll(news), "shop", 0);
    expect(title).toBe("mailchute shop: 1 question, 1 failed, quota");
    expect(text.split("\n")[0]).toBe("question: Drop the column?");
  });

  it("says the same trouble once, however often it was reported", () => {
    const again = Array.from(
      { length: 5 },
      (): News => ({ topic: "stuck", text: "the disk is full" }),
    );
    const { text } = composeMessage("id", gatherAll(again), "shop", 0);
    expect(text).toBe("stuck: the disk is full\nstuck: and 4 more");
  });
});

describe("what is told", () => {
  it("a task that failed by itself, and not the tasks that failed for it", () => {
    expect(newsOfEvent({ task_id: "a", error: "exit 1\nat line 3", kind: "exit" })).toEqual({
      topic: "failed",
      text: "a: exit 1 at line 3",
    });
    expect(
      newsOfEvent({ task_id: "b", error: "a failed", kind: "dependency_failed" }),
    ).toBeUndefined();
    expect(mayBeNews('{"event":"failed","task_id":"a"}')).toBe(true);
    expect(mayBeNews('{"event":"completed","task_id":"a"}')).toBe(false);
  });

  it("alerts by their kind; an unknown one is told, too", () => {
    const topic = (alert: unknown) => newsOfAlert({ alert, message: "m" })?.topic;
    expect(["question", "needs_human", "budget", "quota"].map(topic)).toEqual([
      "question",
      "question",
      "budget",
      "quota",
    ]);
    expect(topic("agent_paused")).toBe("stuck");
    expect(topic("toString")).toBe("stuck");
    expect(topic(7)).toBe("stuck");
    expect(topic("task_failed")).toBeUndefined();
    expect(topic("notify")).toBeUndefined();
  });

  it("shows no character that steers a terminal", () => {
    const news = newsOfEvent({
      task_id: "a",
      error: "\u001b]52;c;aGk=\u0007 \u202ered",
      kind: "exit",
    });
    expect(news?.text).toBe("a: \\u001b]52;c;aGk=\\u0007 \\u202ered");
  });
});

describe("what is posted", () => {
  it("a webhook is signed over its id, its time and its body", () => {
    const key = Buffer.alloc(24, 7);
    const env = { SECRET: `whsec_${key.toString("base64")}` };
    const { headers, body } = requestFor(target({ secret_env: "SECRET" }), MESSAGE, {
      ...FROM,
      env,
    });
    const signed = createHmac("sha256", key)
      .update(`phone-1-x.1700000000.${body}`)
      .digest("base64");
    expect(headers).toMatchObject({
      "webhook-id": "phone-1-x",
      "webhook-timestamp": "1700000000",
      "webhook-signature": `v1,${signed}`,
    });
    expect(JSON.parse(body)).toMatchObject({
      type: "mailchute.notification",
      data: {
        id: "phone-1-x",
        title: "mailchute shop: 1 failed",
        counts: { failed: 1 },
        host: "vm",
      },
    });
  });

  it.each([
    [{ secret_env: "S" }, {}, /the variable S is not set/],
    [{ token_env: "S" }, { S: "" }, /the variable S is not set/],
    [{ secret_env: "S" }, { S: "hunter2" }, /S is no secret of a webhook/],
    [{ secret_env: "S" }, { S: "whsec_AAAA" }, /at least 24 bytes/],
  ])("%j with %j waits until it is mended", (more, env, why) => {
    const make = () => requestFor(target(more), MESSAGE, { ...FROM, env });
    expect(make).toThrow(BadTarget);
    expect(make).toThrow(why);
  });

  it("ntfy gets the topic, the last part of the url, and all text as UTF-8", () => {
    const at = target({
      url: "https://ntfy.example/sub/my%20topic/",
      format: "ntfy",
      token_env: "T",
    });
    const { url, headers, body } = requestFor(
      at,
      { ...MESSAGE, text: "ü…" },
      { ...FROM, env: { T: "tk" } },
    );
    expect(url).toBe("https://ntfy.example/sub/");
    expect(headers["authorization"]).toBe("Bearer tk");
    expect(JSON.parse(body)).toEqual({
      topic: "my topic",
      title: MESSAGE.title,
      message: "ü…",
      priority: 3,
    });
  });

  it("a task cannot mention a channel of Slack", () => {
    const { body } = requestFor(
      target({ format: "slack" }),
      { ...MESSAGE, text: "<!channel> & <@U1>" },
      FROM,
    );
    expect(JSON.parse(body)).toEqual({
      text: "mailchute shop: 1 failed\n&lt;!channel&gt; &amp; &lt;@U1&gt;",
    });
  });
});

it.each<[NotifySettings[], RegExp | undefined]>([
  [
    [
      { name: "a", url: "https://h/x" },
      { name: "b", command: ["true"] },
    ],
    undefined,
  ],
  [
    [
      { name: "a", url: "https://h/x" },
      { name: "a", url: "https://h/y" },
    ],
    /"a" is used twice/,
  ],
  [[{ name: "a" }], /either a command or a url/],
  [[{ name: "a", url: "https://h/x", command: ["true"] }], /either a command or a url/],
  [[{ name: "a", command: ["true"], token_env: "T" }], /are for a url/],
  [[{ name: "a", url: "file:///etc/passwd" }], /must begin with http/],
  [[{ name: "a", url: "no url" }], /must begin with http/],
  [[{ name: "a", url: "https://ntfy.sh/", format: "ntfy" }], /end with the topic/],
  [
    [{ name: "a", url: "https://h/x", format: "slack", secret_env: "S" }],
    /only format webhook is signed/,
  ],
  [[{ name: "a", url: "https://h/x", on: ["morning"] }], /needs at/],
])("the settings %j: %s", (targets, fault) => {
  if (fault === undefined) expect(explainBadNotify(targets)).toBeUndefined();
  else expect(explainBadNotify(targets)).toMatch(fault);
});
