/** Errors grouped by cause. */
import { describe, expect, it } from "vitest";
import { causeOf, type Failure, groupByCause } from "../../src/view/causes.ts";
import { timeLimitMs } from "../support/time-limit.ts";

describe("causeOf", () => {
  it.each([
    ["connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED 10.0.0.7:6000"],
    ["sync-a: exit code 3 after 12.5 s", "sync-b: exit code 3 after 4 s"],
    ["cannot read /srv/a/x.json", "cannot read ./other/y.json"],
    ["GET https://example.com/a?b=1 failed", "GET https://example.org/ failed"],
    ["commit 3f2a91c0 is not there", "commit 99ab12c4 is not there"],
    [
      "session 0199a3c4-1111-7222-8333-444455556666 is lost",
      "session 0199a3c4-9999-7222-8333-444455550000 is lost",
    ],
  ])("takes %j and %j for one cause", (a, b) => {
    expect(causeOf(a, "sync-a")).toBe(causeOf(b, "sync-b"));
  });

  it.each([
    ["connect ECONNREFUSED 127.0.0.1:5432", "connect ETIMEDOUT 127.0.0.1:5432"],
    ["no such agent", "no such account"],
    ["decade is over", "facade is over"],
  ])("keeps %j and %j apart", (a, b) => {
    expect(causeOf(a, "x")).not.toBe(causeOf(b, "x"));
  });

  it("stays short and fast for a text that a hostile program wrote", () => {
    const startedMs = performance.now();
    for (const piece of ["a/", "1.", "0a", "x:", "../", "-", "://"])
      expect(causeOf(piece.repeat(500_000), "id").length).toBeLessThanOrEqual(200);
    expect(performance.now() - startedMs).toBeLessThan(timeLimitMs(2000));
  });
});

describe("groupByCause", () => {
  const failure = (id: string, error: string, atMs: number, kind = "exit"): Failure => ({
    id,
    kind,
    error,
    atMs,
  });

  it("counts each cause, the most frequent first, with its tasks in order of time", () => {
    const causes = groupByCause([
      failure("a", "port 1 is taken", 1),
      failure("b", "no room", 2),
      failure("c", "port 2 is taken", 3),
      failure("d", "no room", 4, "timeout"),
    ]);
    expect(causes.map(({ kind, count, tasks }) => [kind, count, tasks.join(" ")])).toEqual([
      ["exit", 2, "a c"],
      ["exit", 1, "b"],
      ["timeout", 1, "d"],
    ]);
    expect(causes[0]).toMatchObject({ error: "port 1 is taken", first_ms: 1, last_ms: 3 });
  });
});
