/**
 * A program outlives its run, and mailchute cannot find it: it left its session and has no lease any more. What its `say` acknowledged is
 * recorded, and when nothing takes its words any more, `say` fails and tells why.
 */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader } from "../../../src/parts/mail/store/read-messages.ts";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";

const BIN = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
const LONG = { timeoutMs: 60_000 };

/** Says one message after the other, until one is refused, and notes the exit code of each. */
const SAYING = `
  n=0
  while test $n -lt 200; do
    n=$((n + 1))
    ${process.execPath} ${BIN} say hello --to zoe --id late-$n 2>> "$HERE/errors"
    code=$?
    echo "$code late-$n" >> "$HERE/said"
    test $code = 0 || exit
  done`;

it.each(["its run ends", "its worker is killed", "its supervisor and worker are killed"])(
  "while %s",
  async (what) => {
    const start = `(setsid env -u MAILCHUTE_LEASE sh -c '${SAYING}' > /dev/null < /dev/null &)`;
    const wait = what === "its run ends" ? "" : "sleep 1000";
    const script = `${start}; while ! test -e "$HERE/said"; do sleep 0.1; done; ${wait}`;
    const agent = { name: "ann", kind: "exec", program: "sh", args: ["-c", script] };
    const pool = newPool({
      config: `${QUICK_CONFIG}mail_enabled: true\ndata: .\nagents: ${JSON.stringify([agent])}\n`,
    });
    const said = (): string[][] => {
      const path = join(pool.dir, "said");
      if (!fs.existsSync(path)) return [];
      const lines = fs.readFileSync(path, "utf8").trimEnd().split("\n");
      return lines.map((line) => line.split(" "));
    };
    const { pid } = await pool.start();
    pool.drop("main", { agent: "ann", prompt: "go", env: { HERE: pool.dir }, max_attempts: 1 });
    await waitFor(() => said().length > 0, { what: "a first word", ...LONG });
    if (what !== "its run ends") {
      const holder = fs.readdirSync(join(pool.state, "drops")).find((name) => name.includes("@"));
      const worker = pool
        .workers()
        .find(({ pid: one }) => holder?.includes(`-${one.toString(36)}-`));
      process.kill(worker?.pid ?? expect.fail("no worker"), "SIGKILL");
    }
    if (what.includes("supervisor")) {
      process.kill(pid, "SIGKILL");
      await pool.start();
    }
    await waitFor(() => said().at(-1)?.[0] !== "0", { what: "a word that is refused", ...LONG });
    expect(fs.readFileSync(join(pool.dir, "errors"), "utf8")).toContain("ErrIo: the run has ended");
    const acknowledged = said().flatMap(([code, id = ""]) => (code === "0" ? [id] : []));
    const folder = new MailFolder({ dataDir: pool.state, isDurable: false }, OUTSIDE);
    const lost = (): string[] => {
      const there = new Set([...new MessageReader(folder).next()].map(({ id }) => id));
      return acknowledged.filter((id) => !there.has(id));
    };
    await waitFor(() => lost().length === 0, { what: "what was acknowledged", ...LONG });
    expect(acknowledged).toContain("late-1");
    expect(fs.readdirSync(join(pool.state, "drops")).filter((name) => name.includes("@"))).toEqual(
      [],
    );
  },
);
