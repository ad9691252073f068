/** Each error a program can catch has a stable code, and carries place, phase and cause. */
import fs from "node:fs";
import { describe, expect, it } from "vitest";
import * as errors from "../../src/core/errors.ts";

const { MailchuteError, ErrIo, messageOf, systemCode } = errors;
/** By name: a code is the name of its class. */
const byCode: Record<string, unknown> = { ...errors };
const classOf = (code: string): typeof ErrIo => byCode[code] as typeof ErrIo;

const CODES = [
  "ErrMailboxDir",
  "ErrTaskExists",
  "ErrNoTasks",
  "ErrTaskNotFound",
  "ErrTaskStuck",
  "ErrInvalidResult",
  "ErrInvalidTask",
  "ErrInvalidCommand",
  "ErrInvalidConfig",
  "ErrPlugin",
  "ErrInvalidTransition",
  "ErrLeaseLost",
  "ErrInvalidKv",
  "ErrInvalidList",
  "ErrInvalidMessage",
  "ErrInvalidRoadmap",
  "ErrForeignKey",
  "ErrSupervisorRunning",
  "ErrSupervisorGone",
  "ErrGit",
  "ErrIo",
] as const;

describe("an operating error", () => {
  it.each(CODES)("%s has its class name as code and name, and can be caught by class", (code) => {
    const error = new (classOf(code))("it broke");
    expect(error.code).toBe(code);
    expect(error.name).toBe(code);
    expect(error.message).toBe("it broke");
    expect(error).toBeInstanceOf(classOf(code));
    expect(error).toBeInstanceOf(MailchuteError);
    expect(error).toBeInstanceOf(Error);
    expect(String(error)).toBe(`${code}: it broke`);
  });

  it("is in this list, so that none is forgotten", () => {
    const classes = Object.keys(byCode).filter((name) => name.startsWith("Err"));
    expect(classes.sort()).toEqual([...CODES].sort());
  });

  it("carries what it was given", () => {
    const cause = new Error("disk");
    const details = { path: "/x", id: "a", phase: "settle", hint: "do", offset: 0, cause };
    expect(new ErrIo("m", details)).toMatchObject(details);
  });

  it("has no empty members for what it was not given", () => {
    const keys = Object.keys(new ErrIo("m")).filter(
      (key) => new ErrIo("m")[key as "path"] !== undefined,
    );
    expect(keys.sort()).toEqual(["code", "name"]);
    expect("cause" in new ErrIo("m")).toBe(false);
  });
});

describe("anything thrown", () => {
  it("has a system code when it came from the file system, and none otherwise", () => {
    let thrown: unknown;
    try {
      fs.readFileSync("/no/such/file");
    } catch (error) {
      thrown = error;
    }
    expect(systemCode(thrown)).toBe("ENOENT");
    for (const other of [new Error("x"), undefined, null, "ENOENT", 3, { code: 5 }])
      expect(systemCode(other)).toBe("");
  });

  it("has a text", () => {
    expect(messageOf(new Error("x"))).toBe("x");
    expect(messageOf("y")).toBe("y");
    expect(messageOf(undefined)).toBe("undefined");
  });
});
