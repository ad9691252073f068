/** The home of its own program: a run keeps its sessions there, and changes nothing that a person's sessions obey. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { walledPlace } from "./place.ts";

/** Runs inside. Prints the names that it could change. */
function tryAll(home: string, names: string[]): void {
  const fs = process.getBuiltinModule("node:fs");
  const path = process.getBuiltinModule("node:path");
  const changes: ((file: string) => void)[] = [
    (file) => fs.writeFileSync(file, "mine"),
    (file) => fs.rmSync(file),
    (file) => {
      fs.writeFileSync(`${home}/new`, "mine");
      fs.renameSync(`${home}/new`, file);
    },
    (file) => fs.renameSync(path.dirname(file), `${path.dirname(file)}-gone`),
  ];
  const changed = names.filter((name) =>
    changes.some((change) => {
      try {
        fs.mkdirSync(path.dirname(`${home}/${name}`), { recursive: true });
        change(`${home}/${name}`);
        return true;
      } catch {
        return false;
      }
    }),
  );
  console.log(JSON.stringify(changed));
}

const SNAPSHOT = "shell-snapshots/of-a-person.sh";

it.each([
  {
    program: "claude",
    folder: ".claude",
    obeyed: "settings.json CLAUDE.md .claude.json hooks/a skills/b/SKILL.md plugins/c".split(" "),
    // It sees no snapshots but its own.
    own: ["projects/session", SNAPSHOT],
  },
  {
    program: "codex",
    folder: ".codex",
    obeyed: "config.toml AGENTS.md rules/a.rules skills/b/SKILL.md".split(" "),
    own: ["sessions/session", "auth.json"],
  },
])(
  "what the person's $program obeys stays as it is, there or not",
  async ({ program, folder, obeyed, own: theirs }) => {
    const place = walledPlace("{}");
    if (typeof place === "string") throw new Error(place);
    const { pool, home, own, repository } = place;
    const link = join(dirname(home), program);
    fs.symlinkSync(process.execPath, link);
    const ours = join(home, folder);
    const [settings = ""] = obeyed;
    fs.mkdirSync(join(ours, "shell-snapshots"), { recursive: true });
    for (const name of [SNAPSHOT, settings]) fs.writeFileSync(join(ours, name), "person");
    own();
    await pool.start();
    const names = [...obeyed, ...theirs];
    const script = `(${tryAll.toString()})(${JSON.stringify(ours)}, ${JSON.stringify(names)})`;
    pool.drop("a", { exec: [link, "-e", script], cwd: repository.dir, worktree: "auto" });
    const { output } = await pool.result("a");
    expect(JSON.parse(String(output))).toEqual(theirs);
    for (const name of [SNAPSHOT, settings])
      expect(fs.readFileSync(join(ours, name), "utf8")).toBe("person");
    expect(fs.readFileSync(join(ours, theirs[0] as string), "utf8")).toBe("mine");
  },
);
