/** What `ps` prints, on macOS and on Linux, with processes that put hostile text there. */
import { describe, expect, it } from "vitest";
import { parseCommands, parseTable, variablesIn } from "../../../src/host/processes/ps-text.ts";

const row = (pid: number, parent: number, group: number, startTicks: number) => {
  return { pid, parent, group, session: 0, threads: 0, startTicks };
};

describe("the table", () => {
  it("of macOS is read, without zombies", () => {
    // Names are padded, days have two places, states have marks.
    const text = [
      "    1     0     1 Ss   Mon Nov  2 08:01:59 2026    ",
      "  612     1   612 S    Mon Nov  2 08:02:04 2026    ",
      " 8123   612  8123 Z    Thu Nov 26 00:00:00 2026    ",
      "99998  8123  8123 R+   Thu Nov 26 23:59:60 2026    ",
      "",
    ].join("\n");
    expect(parseTable(text)).toEqual([
      row(1, 0, 1, Date.UTC(2026, 10, 2, 8, 1, 59) / 1000),
      row(612, 1, 612, Date.UTC(2026, 10, 2, 8, 2, 4) / 1000),
      row(99998, 8123, 8123, Date.UTC(2026, 10, 27) / 1000),
    ]);
  });

  it("of Linux is read", () => {
    const text =
      "      1       0       0 Ss   Wed Nov 25 20:38:17 2026\n4194304       1 4194304 SNsl Thu Nov 26 06:51:30 2026\n";
    expect(parseTable(text).map(({ pid, startTicks }) => [pid, startTicks])).toEqual([
      [1, Date.UTC(2026, 10, 25, 20, 38, 17) / 1000],
      [4194304, Date.UTC(2026, 10, 26, 6, 51, 30) / 1000],
    ]);
  });

  it.each([
    ["of another language", "  1     0     1 Ss   Mo  2 Nov 08:01:59 2026"],
    ["with a month that is none", "  1     0     1 Ss   Mon Nev  2 08:01:59 2026"],
    ["without a start", "  1     0     1 Ss"],
    ["of a ps that has other columns", "PID   USER     TIME  COMMAND"],
    ["cut off", "  1     0     1 Ss   Mon Nov  2 08:01:59 2026\n  612     1   6"],
  ])("%s is no table: nobody counts as dead because of it", (_, text) => {
    expect(() => parseTable(text)).toThrow("ps printed");
  });
});

describe("the commands", () => {
  it("may hold any text", () => {
    // Both write what cannot be printed in other characters: macOS a newline as \\012 or ^J, Linux as ?.
    const text = [
      "    1 /sbin/launchd",
      "  612 /bin/sh -c echo  two  spaces \\012 ^J ? ",
      "  613 sh -c printf 'M-CM-)' \xc3\xa9 \xff\xfe",
      "  614 (node)",
      "  615 ",
      "",
    ].join("\n");
    expect([...parseCommands(text)]).toEqual([
      [1, "/sbin/launchd"],
      [612, "/bin/sh -c echo  two  spaces \\012 ^J ? "],
      [613, "sh -c printf 'M-CM-)' \xc3\xa9 \xff\xfe"],
      [614, "(node)"],
      [615, ""],
    ]);
  });

  it("of a pid with two lines are not known: one of them is the text of another process", () => {
    const text = "  612 sh -c x\n  700 evil MAILCHUTE_LEASE=a\n  612 MAILCHUTE_LEASE=a\n";
    expect([...parseCommands(text).keys()]).toEqual([700]);
  });
});

describe("the variables", () => {
  it("are what follows the command", () => {
    expect(variablesIn("node a.js HOME=/x LANG=", "node a.js")).toBe("HOME=/x\0LANG=\0");
    expect(variablesIn("node a.js", "node a.js")).toBe("");
    // Linux ends some lines with a space.
    expect(variablesIn("node a.js ", "node a.js")).toBe("");
  });

  it("do not hold what is an argument", () => {
    const command = "grep -r MAILCHUTE_LEASE=a.1.x MAILCHUTE_STATE=/s";
    expect(variablesIn(`${command} HOME=/x`, command)).toBe("HOME=/x\0");
  });

  it("keep spaces, where no variable seems to begin", () => {
    const full = "sh NAME=Ada von Lovelace PATH=/a b:/c d EMPTY= X=1=2 LAST=a  b ";
    expect(variablesIn(full, "sh")).toBe(
      "NAME=Ada von Lovelace\0PATH=/a b:/c d\0EMPTY=\0X=1=2\0LAST=a  b \0",
    );
  });

  it("do not begin within a value", () => {
    const full = "sh X=MAILCHUTE_LEASE=a.1.x Y=(MAILCHUTE_LEASE=a.1.x) Z=1";
    expect(variablesIn(full, "sh")).toBe(
      "X=MAILCHUTE_LEASE=a.1.x\0Y=(MAILCHUTE_LEASE=a.1.x)\0Z=1\0",
    );
  });

  it("are not known when it has started another program in between", () => {
    expect(variablesIn("node worker.js HOME=/x", "sh -c x")).toBeUndefined();
    expect(variablesIn("sh -c xy HOME=/x", "sh -c x")).toBeUndefined();
  });
});
