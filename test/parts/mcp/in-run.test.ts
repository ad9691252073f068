/** `mailchute mcp` in the run of an agent: it is that agent, and may do what a run may do. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { OUTSIDE } from "../../../src/parts/mail/scope/scope.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader } from "../../../src/parts/mail/store/read-messages.ts";
import { newBench } from "../../agents/runs/bench.ts";

const BIN = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
const CLI = `${process.execPath} ${BIN}`;

it.each([
  ["hands its variables on", ""],
  ["keeps them to itself, as codex does", 'env -i PATH="$PATH" '],
])(
  "a client in a run that %s speaks as its agent, gives tasks through it, and steers nothing",
  async (_, before) => {
    const call = (id: number, name: string, args: object): string =>
      JSON.stringify({
        jsonrpc: "2.0",
        id,
        method: "tools/call",
        params: { name, arguments: args },
      });
    const calls = [
      call(1, "say", { to: ["june"], text: "by mcp" }),
      call(2, "enqueue", { agent: "Coder", prompt: "child" }),
      call(3, "pause", {}),
      call(4, "answer", { id: "q1", text: "yes" }),
    ];
    const script = [
      `printf '%s\\n' ${calls.map((line) => `'${line}'`).join(" ")} | ${before}${CLI} mcp --allow control > "$MAILCHUTE_STATE/../out" 2>&1`,
      `${before}${CLI} mcp --as june < /dev/null 2>> "$MAILCHUTE_STATE/../out"; true`,
    ];
    const turns = [[{ run: script.join("\n") }, { say: "done" }], [{ say: "ok" }]];
    const { pool } = newBench([
      { name: "Coder", kind: "claude", turns, settings: { account: "coder" } },
    ]);
    fs.appendFileSync(join(pool.state, "config.yaml"), "data: .\n");
    await pool.start();
    pool.drop("main", { agent: "Coder", prompt: "go" });
    await pool.result("main", 60_000);
    const out = fs.readFileSync(join(pool.dir, "out"), "utf8");
    const lines = out.split("\n").filter((line) => line.startsWith("{"));
    const answers = new Map(lines.map((line) => [JSON.parse(line).id, JSON.parse(line).result]));
    expect(answers.get(1)).toMatchObject({ isError: false });
    expect(answers.get(2)).toMatchObject({ isError: false });
    for (const [id, verb] of [
      [3, "pause"],
      [4, "answer"],
    ] as const) {
      expect(answers.get(id)).toMatchObject({ isError: true });
      const refusal = `a run of an agent may not use \`mailchute ${verb}\``;
      expect(JSON.stringify(answers.get(id))).toContain(refusal);
    }
    expect(out).toContain("a run speaks as its agent");
    const folder = new MailFolder({ dataDir: pool.state, isDurable: false }, OUTSIDE);
    const [said] = [...new MessageReader(folder).next()];
    expect(said).toMatchObject({ from_agent: "coder", via: "run", content: "by mcp" });
    const child = answers.get(2).content[0].text.trim();
    expect(await pool.result(child, 60_000)).toMatchObject({ task: { sender: "main" } });
  },
);
