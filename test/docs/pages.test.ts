/** Tutorials and how-tos: each page's blocks run as they stand, in a fresh home directory, and one sees what the page says. */
import fs from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import {
  homeOf,
  killAllOf,
  pagesOfDocs,
  putClaude,
  putCodex,
  putProgram,
  putRepository,
  runAsNewcomer,
  runPage,
} from "../support/newcomer.ts";
import { tempDir } from "../support/temp-dir.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

interface Stage {
  /** Programs without which the page is not tried. */
  needs?: string[];
  /** Puts there what the page takes for granted, and stand-ins for what the machine of the tests lacks. */
  prepare?: (dir: string) => void | Promise<void>;
  /** What the page promises beside what one sees. */
  check?: (dir: string) => void;
}

/** A turn of a stand-in: it runs a command, and says something. */
const turn = (run: string, say = "Done."): object[] => [{ run }, { say }];
const PASS = [{ say: '<result>{"verdict": "pass", "summary": "good"}</result>' }];
const SHOP = {
  "greeting.txt": "Hello\n",
  "package.json": '{"scripts": {"test": "test -s greeting.txt"}}\n',
};

const put = (path: string, text: string): void => {
  fs.mkdirSync(dirname(path), { recursive: true });
  fs.writeFileSync(path, text);
};

/** Films of which the third is broken, and the fifth makes nothing, until it is mended. */
function putFilms(dir: string): void {
  for (const n of [1, 2, 3, 4, 5, 6]) put(join(dir, "videos", `film ${n}.mov`), "a film\n");
  for (const name of ["videos/film 3.mov", "videos/film 5.mov"])
    put(join(dir, name), name.includes("3") ? "broken\n" : "");
  put(join(dir, "mended.mov"), "a film\n");
  putProgram(
    dir,
    "ffmpeg",
    `while [ $# -gt 1 ]; do [ "$1" = -i ] && in=$2; shift; done
grep -q broken "$in" && { echo "$in: Invalid data found when processing input" >&2; exit 1; }
cp "$in" "$1"
`,
  );
  putProgram(dir, "ffprobe", 'while [ $# -gt 1 ]; do shift; done; test -s "$1"\n');
}

/** Starts and ends the pool of a unit, as systemd does. */
function putSystemd(dir: string): void {
  const unit = join(dir, ".config/systemd/user/mailchute.service");
  putProgram(
    dir,
    "systemctl",
    `unit='${unit}' pid='${join(dir, "service.pid")}'
case " $* " in
  *" is-system-running "*) echo running ;;
  *" restart "*)
    command=$(sed -n 's/^ExecStart=//p' "$unit")
    eval "exec env -u UV_THREADPOOL_SIZE setsid $command" > /dev/null 2>&1 < /dev/null &
    echo $! > "$pid"
    tree=$(sed -n 's/^WorkingDirectory=//p' "$unit")
    until mailchute health --state "$tree" > /dev/null; do sleep 0.1; done ;;
  *" disable "*) kill "$(cat "$pid")"; rm "$pid" ;;
  *" show "*)
    state=inactive; [ -e "$pid" ] && state=active
    printf '%s\\n' ActiveState=$state SubState=running UnitFileState=enabled MainPID=1 NRestarts=0 ;;
esac
`,
  );
}

/** A night that ended at a kill of the pool: one task completed, two failed, one ran, one waits. */
async function putLostNight(dir: string): Promise<void> {
  putRepository(join(dir, "shop"), SHOP);
  put(join(dir, "work/Makefile"), "all:\n\ttest -e begun || { touch begun; sleep 600; }\n");
  putProgram(
    dir,
    "linter",
    `[ -e '${join(dir, "rules.json")}' ] || { echo "rules.json is missing" >&2; exit 2; }\n`,
  );
  const evening = `
    mailchute init
    mailchute enqueue --id fetch -- echo fetched
    mailchute enqueue --id lint --max-attempts 1 -- linter
    mailchute enqueue --id draft --max-attempts 1 --worktree auto --cwd ../shop --verify 'test ! -e draft.txt' \\
      --shell 'echo chapter one > draft.txt'
    mailchute run --drain || test $? = 1
    mailchute enqueue --id build -- make
    mailchute enqueue --id pack --after build -- echo packed
    mailchute run --detach
    while ! [ -e begun ]; do sleep 0.1; done`;
  await runAsNewcomer(dir, `cd work${evening}`, homeOf(dir));
  killAllOf(dir);
  fs.writeFileSync(join(dir, "rules.json"), "");
}

/** A tree whose journal has something to say to each question. */
async function putJournals(dir: string): Promise<void> {
  const day = `
    mailchute init
    mailchute enqueue --id slow -- sleep 2
    mailchute enqueue --id flaky --group nightly --shell 'test -e again || { touch again; exit 1; }'
    mailchute enqueue --id lint --max-attempts 2 -- false
    mailchute enqueue --id hangs --group nightly --max-attempts 1 --timeout 500ms -- sleep 600
    mailchute run --drain || test $? = 1`;
  await runAsNewcomer(dir, `mkdir work; cd work${day}`, homeOf(dir));
  const spent = { agent: "coder", cost_usd_micro: 250_000 };
  put(join(dir, "work/state/analytics/costs.2026-11-29.jsonl"), `${JSON.stringify(spent)}\n`);
}

const STAGES: Record<string, Stage> = {
  "docs/tutorials/first-queue.md": {},
  "docs/tutorials/plan.md": {},
  "docs/tutorials/first-night.md": {
    needs: ["git"],
    prepare: (dir) =>
      putClaude(dir, {
        tasks: {
          "Write README": [turn("echo 'hello.sh prints a greeting.' > README.md")],
          "greet in German": [turn(`echo 'echo "Guten Tag"' > hello.sh`)],
          "Add a test": [turn("echo '[ $(sh hello.sh | wc -l) = 1 ]' >> check.sh")],
        },
      }),
  },
  "docs/how-to/ask-the-journals.md": { needs: ["jq"], prepare: putJournals },
  "docs/how-to/gpu-group.md": { needs: ["flock"] },
  "docs/how-to/nightly-with-mail.md": {
    needs: ["make"],
    prepare: (dir) => {
      put(join(dir, "shop/Makefile"), "nightly:\n\t@echo building; false\n");
      putProgram(dir, "mail", `{ echo "$3"; echo "$2"; cat; } >> '${join(dir, "mails")}'\n`);
    },
    check: (dir) =>
      expect(fs.readFileSync(join(dir, "mails"), "utf8")).toMatch(
        /^me@example.org\nNightly build: make: .* Error 1 \(the program ended with exit code 2\)\nbuilding\n$/,
      ),
  },
  "docs/how-to/recover-a-lost-night.md": { needs: ["git", "make"], prepare: putLostNight },
  "docs/how-to/run-as-a-service.md": {
    prepare: (dir) => {
      fs.mkdirSync(join(dir, "shop"));
      putSystemd(dir);
    },
  },
  "docs/how-to/share-a-machine.md": { needs: ["python3"] },
  "docs/how-to/three-agents.md": {
    needs: ["git"],
    prepare: (dir) => {
      putRepository(join(dir, "shop"), SHOP);
      put(join(dir, "ada.md"), "- [ ] Greet in German\n- [ ] Write the manual\n");
      put(join(dir, "bob.md"), "- [ ] Add a licence\n");
      putClaude(dir, {
        tasks: {
          "## Your verdict": [PASS],
          "Greet in German": [turn("echo Guten Tag > greeting.txt")],
          "Write the manual": [turn("echo Read me. > manual.txt")],
        },
      });
      putCodex(dir, { tasks: { "Add a licence": [turn("echo MIT > LICENCE")] } });
    },
  },
  "docs/how-to/transcode-a-folder.md": { prepare: putFilms },
  "docs/how-to/write-a-client.md": {
    needs: ["python3"],
    prepare: (dir) => {
      fs.mkdirSync(join(dir, "client/node_modules"), { recursive: true });
      fs.symlinkSync(ROOT, join(dir, "client/node_modules/mailchute"));
    },
  },
};

const PATH = (process.env["PATH"] ?? "").split(delimiter);
const isThere = (program: string): boolean => PATH.some((dir) => fs.existsSync(join(dir, program)));

test("caught: a page whose command fails, and one that shows what is not seen", async () => {
  const page = (command: string, seen: string): string =>
    `\`\`\`bash\n${command}\n\`\`\`\n\`\`\`text\n${seen}\n\`\`\`\n\`\`\`bash\ntrue\n\`\`\`\n`;
  await runPage(tempDir(), page("echo at 07:15, 3 s ago", "at 08:00, …"));
  await runPage(tempDir(), page("false   # exit code 1", ""));
  await expect(runPage(tempDir(), page("echo two", "one"))).rejects.toThrow();
  await expect(runPage(tempDir(), page("false; echo one", "one"))).rejects.toThrow();
});

/** With a real server: test/parts/cluster/nats/how-to.test.ts. */
const ELSEWHERE = ["docs/how-to/several-machines.md"];

test("every tutorial and how-to is tried", () => {
  const pages = pagesOfDocs().filter((name) => /^docs\/(?:tutorials|how-to)\//.test(name));
  expect([...Object.keys(STAGES), ...ELSEWHERE].sort()).toEqual(pages);
});

for (const [name, { needs = [], prepare, check }] of Object.entries(STAGES))
  test.skipIf(!needs.every(isThere))(`${name} does what it says`, async () => {
    // Not below /tmp, which the sandbox of codex may write to.
    const dir = tempDir(onTestFinished, "/var/tmp");
    await prepare?.(dir);
    await runPage(dir, fs.readFileSync(join(ROOT, name), "utf8"));
    check?.(dir);
  });

test.skipIf(!isThere("git"))(
  "the first night does what it says with its stand-in, too",
  async () => {
    const page = fs.readFileSync(join(ROOT, "docs/tutorials/first-night.md"), "utf8");
    const [, standIn] = /```sh\n(.*?)```/s.exec(page) ?? [];
    const changed = page
      .replace(
        /```bash\nmailchute init .*?```\n\n```text.*?```/s,
        () => `\`\`\`bash\n${standIn}\`\`\``,
      )
      .replaceAll("--agent claude", "--agent me")
      .replace("… USD in 3 runs of coding agents\n", "")
      .replace("\nmailchute cost\n", "\n")
      .replace(/AGENT {3}RUNS.*?```/s, "```");
    const dir = tempDir(onTestFinished, "/var/tmp");
    await runPage(dir, changed);
    expect(fs.readFileSync(join(dir, "hello/README.md"), "utf8")).toContain("greeting");
  },
);

test("the line for cron and the settings of an MCP client work as their pages have them", async () => {
  const dir = tempDir(onTestFinished, "/var/tmp");
  onTestFinished(() => killAllOf(dir));
  const block = (name: string, language: string): string => {
    const page = fs.readFileSync(join(ROOT, name), "utf8");
    const all = page.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "gs"));
    return (
      [...all].map(([, text = ""]) => text).find((text) => /@reboot|mcpServers/.test(text)) ?? ""
    );
  };
  const { mcpServers } = JSON.parse(
    block("docs/mcp.md", "json").replace("/home/me/project", dir),
  ) as { mcpServers: { mailchute: { command: string; args: string[] } } };
  const { command, args } = mcpServers.mailchute;
  const said = await runAsNewcomer(
    dir,
    `mailchute init
    echo '{"jsonrpc": "2.0", "id": 1, "method": "ping"}' | ${command} ${args.join(" ")}
    line=$(${block("docs/service.md", "sh")})
    env -i HOME="$HOME" PATH=/none /bin/sh -c "\${line#@reboot }"
    mailchute stop`,
    homeOf(dir),
  );
  expect(said).toMatch(/"id":1,"result":\{\}.*\nruns in the background .*\nstopped/s);
});
