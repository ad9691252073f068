/** What is taken for the variables of a process, from texts as `ps` prints them. */
import { expect, it, onTestFinished } from "vitest";
import type { ProcessRow } from "../../../src/host/processes/process-source.ts";
import { psLook } from "../../../src/host/processes/ps-look.ts";

const LONG_AGO = 1_700_000_000;
const OURS = "MAILCHUTE_LEASE=a.1.x";

interface Shown {
  /** pid, parent, group */
  of: [number, number, number];
  command: string;
  /** Missing: the system hides them. */
  variables?: string;
  startTicks?: number;
  /** The command when it is asked for again. */
  next?: string;
}

let noted: [number, string][] = [];

function lookAt(...processes: Shown[]): ReturnType<typeof psLook> & { runs: boolean[] } {
  const rows = processes.map(({ of: [pid, parent, group], startTicks = LONG_AGO }): ProcessRow => {
    return { pid, parent, group, session: 0, threads: 0, startTicks };
  });
  const runs: boolean[] = [];
  const lines = (isWithVariables: boolean): string[] =>
    processes.map(({ of: [pid], command, variables, next }) => {
      const text = isWithVariables || next === undefined ? command : next;
      return `${String(pid).padStart(5)} ${text}${isWithVariables && variables !== undefined ? ` ${variables}` : ""}`;
    });
  const run = (isWithVariables: boolean) => {
    runs.push(isWithVariables);
    return { text: `${lines(isWithVariables).join("\n")}\n`, pid: 0 };
  };
  const look = psLook(rows, run, () => new Map(noted));
  return { ...look, runs };
}

const textOf = (look: ReturnType<typeof psLook>, pid: number) => look.environ(pid)?.toString();

it("each text is asked for once, the second one only when a process has variables of ours", () => {
  const none = lookAt(
    { of: [7, 1, 7], command: "sh", variables: "HOME=/x" },
    { of: [8, 1, 8], command: "sh" },
  );
  expect(none.runs).toEqual([]);
  expect(textOf(none, 8)).not.toContain("MAILCHUTE_");
  expect(textOf(none, 7)).toContain("HOME=/x\0");
  expect(none.runs).toEqual([true]);
  const some = lookAt({ of: [7, 1, 7], command: "sh", variables: `A=1 ${OURS}` });
  expect(textOf(some, 7)).toBe(`A=1\0${OURS}\0`);
  expect(textOf(some, 7)).toBe(`A=1\0${OURS}\0`);
  expect(some.runs).toEqual([true, false]);
});

it("a process that has the text of a variable among its arguments has no such variable", () => {
  const look = lookAt({ of: [7, 1, 7], command: `grep ${OURS} x`, variables: "HOME=/x" });
  expect(textOf(look, 7)).toBe("HOME=/x\0");
});

it("a process whose variables are hidden has those of its group, and of no other", () => {
  const look = lookAt(
    { of: [7, 1, 7], command: "/bin/sh -c node x.js" },
    { of: [8, 7, 7], command: "node x.js", variables: `${OURS} HOME=/x` },
    { of: [9, 7, 7], command: "env", variables: "HOME=/y" },
    { of: [10, 1, 10], command: "/bin/sh -c y" },
  );
  expect(textOf(look, 7)).toBe(`${OURS}\0HOME=/x\0`);
  expect(textOf(look, 9)).not.toContain("MAILCHUTE_");
  expect(textOf(look, 10)).not.toContain("MAILCHUTE_");
  expect(look.environ(11)).toBeUndefined();
});

it("a process whose variables are hidden has those that were noted of the program that leads its group", () => {
  noted = [
    [7, `${OURS}\0`],
    [10, `${OURS}\0`],
  ];
  onTestFinished(() => {
    noted = [];
  });
  const look = lookAt(
    { of: [7, 1, 7], command: "/bin/sh -c sleep" },
    { of: [8, 7, 7], command: "/bin/sleep 60" },
    { of: [9, 7, 9], command: "/bin/sleep 60" },
    // It shows others: the note is of an earlier process.
    { of: [10, 1, 10], command: "node", variables: "MAILCHUTE_LEASE=b.1.x" },
  );
  expect(textOf(look, 7)).toBe(`${OURS}\0`);
  expect(textOf(look, 8)).toBe(`${OURS}\0`);
  expect(textOf(look, 9)).not.toContain("MAILCHUTE_");
  expect(textOf(look, 10)).toBe("MAILCHUTE_LEASE=b.1.x\0");
});

it("a group in which two leases are found says nothing of its others", () => {
  const look = lookAt(
    { of: [7, 1, 7], command: "/bin/sh" },
    { of: [8, 7, 7], command: "node", variables: OURS },
    { of: [9, 7, 7], command: "node", variables: "MAILCHUTE_LEASE=b.1.x" },
  );
  expect(textOf(look, 7)).not.toContain("MAILCHUTE_");
});

it("a process that has started another program since is unclear, and so is a young orphan that shows nothing", () => {
  const startTicks = Math.floor(Date.now() / 1000);
  const look = lookAt(
    { of: [1, 0, 1], command: "/sbin/launchd" },
    { of: [2, 1, 2], command: "node", variables: OURS, next: "sleep 60" },
    { of: [3, 1, 3], command: "/bin/sleep 60", startTicks },
    { of: [4, 1, 4], command: "/bin/sleep 60" },
    { of: [5, 1, 5], command: "sleep 60", variables: "HOME=/x", startTicks },
    { of: [6, 1, 6], command: `${process.execPath} entry.js`, variables: "A=1", startTicks },
    { of: [7, 6, 7], command: `${process.execPath} entry.js`, variables: "A=1", startTicks },
    { of: [8, 6, 8], command: "(node)", startTicks },
  );
  const newborn = look.rows.filter((row) => look.isNewborn(row)).map(({ pid }) => pid);
  expect(newborn).toEqual([2, 3, 6, 8]);
  expect(look.environ(2)).toBeUndefined();
});

it("a script has its own name, other programs theirs", () => {
  const look = lookAt(
    { of: [7, 1, 7], command: "/opt/homebrew/bin/git gc", variables: "HOME=/x" },
    { of: [8, 1, 8], command: "/bin/sh /usr/local/bin/git-flow start", variables: "HOME=/x" },
    { of: [9, 1, 9], command: "sleep 60" },
  );
  expect([7, 8, 9, 10].map((pid) => look.nameOf(pid))).toEqual(["git", "git-flow", "sleep", ""]);
  expect(look.argsOf(9)).toBe("sleep\x0060\0");
  expect(look.cwdOf(9)).toBeUndefined();
});
