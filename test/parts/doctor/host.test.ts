/** What `doctor` says of how this machine is asked about its processes. */
import { expect, it } from "vitest";
import { describeHost } from "../../../src/parts/doctor/host.ts";
import { newCli } from "../../cli/run-cli.ts";
import { doctor } from "./doctor.ts";

const FIRST = "pid:[4026531836]";
const HOURS = 4 * 3_600_000;

it.each([
  ["proc", "linux", FIRST, "ok", "seen at once"],
  ["proc", "linux", undefined, "ok", "seen at once"],
  ["proc", "linux", "pid:[4026532441]", "ok", "after 4 h of silence (lease_ttl_ms)"],
  ["portable", "darwin", undefined, "ok", "docs/macos.md"],
  ["portable", "linux", undefined, "warn", "asks ps"],
] as const)("%s on %s in %s", (kind, platform, space, status, message) => {
  expect(describeHost(kind, platform, space, HOURS)).toMatchObject({
    status,
    message: expect.stringContaining(message),
  });
});

it.runIf(process.platform === "linux")(
  "doctor says which it is, and what to do about a forced one",
  async () => {
    const cli = newCli();
    const host = async (kind: string) =>
      (await doctor(cli, [], { MAILCHUTE_HOST: kind })).of("host");
    expect(await host("proc")).toMatchObject([{ status: "ok" }]);
    expect(await host("portable")).toMatchObject([
      { status: "warn", do: expect.stringContaining("unset MAILCHUTE_HOST") },
    ]);
  },
);
