/**
 * `enqueue --file todo.md` and `list sync` are killed before each of their file-system calls. Given again, each item runs once, each box
 * is ticked, and nothing else of the list changes. Most of the kills are a sample: `npm run test:walks` takes them all.
 */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { tempDir } from "../support/temp-dir.ts";
import { sampleOfCalls } from "../support/walks.ts";

const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));
const HOOK = fileURLToPath(new URL("hook.cjs", import.meta.url));
const CONFIG = `
durability: process
agents:
  - {name: coder, kind: exec, program: sh, args: ["-c", "sed -n '1s/^# //p' $MAILCHUTE_PACKET >> runs.txt"]}
`;
const LIST = "# Todo\r\n- [ ] A\n  - [ ] one\n  - [ ] two\n\n```\n- [ ] code\n```\n* [ ] three";
const TICKED = LIST.replace(/\[ \](?! code)/g, "[x]");
const SAMPLE = 2;

const ENQUEUE = ["enqueue", "--agent", "coder", "--file", "todo.md"];
const SYNC = ["list", "sync", "todo.md"];

class Place {
  readonly dir = tempDir();

  constructor() {
    fs.mkdirSync(join(this.dir, "state"), { mode: 0o700 });
    fs.writeFileSync(join(this.dir, "state", "config.yaml"), CONFIG);
    fs.writeFileSync(join(this.dir, "todo.md"), LIST);
  }

  run(args: readonly string[], env: Record<string, string> = {}): NodeJS.Signals | null {
    const ended = spawnSync(process.execPath, [LAUNCHER, ...args], {
      cwd: this.dir,
      env: { PATH: process.env["PATH"], XDG_STATE_HOME: join(this.dir, "xdg"), ...env },
      encoding: "utf8",
    });
    if (ended.signal === null) expect(ended.status, ended.stderr).toBe(0);
    return ended.signal;
  }

  /** Kills it before its call number `at` that changes something here; 0 counts the calls. */
  runWith(args: readonly string[], at: number): NodeJS.Signals | null {
    const report = `${this.dir}.report`;
    fs.rmSync(report, { force: true });
    const plan = { role: "main", root: this.dir, act: "kill", when: "before", at, report };
    return this.run(args, {
      NODE_OPTIONS: `--require=${HOOK}`,
      MAILCHUTE_CRASH: JSON.stringify(plan),
    });
  }

  callsOf(args: readonly string[]): number {
    this.runWith(args, 0);
    const lines = fs.readFileSync(`${this.dir}.report`, "utf8").trim().split("\n");
    fs.rmSync(`${this.dir}.report`);
    return (JSON.parse(lines.at(-1) ?? "{}") as { count: number }).count;
  }

  drain(): void {
    this.run(["run", "--drain", "--no-live"]);
  }

  /** As a program that takes the results away. */
  takeResults(): void {
    const outbox = join(this.dir, "state", "mailbox", "outbox");
    for (const name of fs.readdirSync(outbox)) fs.rmSync(join(outbox, name));
  }

  list(): string {
    return fs.readFileSync(join(this.dir, "todo.md"), "utf8");
  }

  runs(): string[] {
    const path = join(this.dir, "runs.txt");
    return fs.existsSync(path) ? fs.readFileSync(path, "utf8").trim().split("\n").sort() : [];
  }
}

it("enqueue, killed at any call and given again, runs each item once", () => {
  const calls = new Place().callsOf(ENQUEUE);
  expect(calls).toBeGreaterThan(10);
  for (const at of sampleOfCalls(calls, SAMPLE)) {
    const place = new Place();
    // The first call that is not made any more may be the release of the lock, after all work.
    expect(place.runWith(ENQUEUE, at), `call ${at} of ${calls}`).toBe("SIGKILL");
    if (fs.existsSync(join(place.dir, "state", "mailbox", "inbox"))) {
      place.drain();
      place.takeResults();
    }
    place.run(ENQUEUE);
    place.drain();
    expect(place.runs(), `call ${at} of ${calls}`).toEqual(["one", "three", "two"]);
    place.run(SYNC);
    expect(place.list()).toBe(TICKED);
  }
});

it("list sync, killed at any call and given again, ticks each box, and a finished item never runs again", () => {
  const ready = (): Place => {
    const place = new Place();
    place.run(ENQUEUE);
    place.drain();
    return place;
  };
  const calls = ready().callsOf(SYNC);
  expect(calls).toBeGreaterThan(10);
  for (const at of sampleOfCalls(calls, SAMPLE)) {
    const place = ready();
    expect(place.runWith(SYNC, at), `call ${at} of ${calls}`).toBe("SIGKILL");
    expect([LIST, TICKED]).toContain(place.list());
    // A new item with the line of a finished one, above it.
    fs.writeFileSync(join(place.dir, "todo.md"), `* [ ] three\n${place.list()}`);
    const isTicked = place.list().endsWith("* [x] three");
    place.run(SYNC);
    expect(place.list(), `call ${at} of ${calls}`).toBe(
      isTicked
        ? `* [ ] three\n${TICKED}`
        : `* [x] three\n${TICKED.replace("* [x] three", "* [ ] three")}`,
    );
    place.run(ENQUEUE);
    place.drain();
    expect(place.runs()).toEqual(["one", "three", "three", "two"]);
    place.run(SYNC);
    expect(place.list()).toBe(`* [x] three\n${TICKED}`);
    expect(fs.readdirSync(place.dir).sort()).toEqual(["runs.txt", "state", "todo.md"]);
  }
});
