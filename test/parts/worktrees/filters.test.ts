/** Filters, line ends and encodings of the repository, as they stood before the run, work in all that mailchute does with git. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { inWorktree, newPlace, type Place } from "./place.ts";

const TARGET = "mailchute/integration";

/** Runs a task and lands its work. @returns bytes of a file on the target */
async function landed(place: Place, script: string, name: string): Promise<string> {
  place.pool.drop("a", inWorktree(script, { land: "merge" }));
  await (await place.pool.start(["--drain"])).ended;
  await place.pool.result("a.land");
  return place.repo.git("cat-file", "-p", `${TARGET}:${name}`);
}

test("a filter like that of LFS stores pointers and gives an agent the files", async () => {
  const place = newPlace();
  const { pool, repo } = place;
  const store = join(pool.dir, "store");
  fs.mkdirSync(store);
  const program = join(pool.dir, "git-large");
  const clean = `id=$(cat > ${store}/new; sha256sum < ${store}/new | cut -c 1-8); mv ${store}/new ${store}/$id; echo "pointer $id"`;
  const smudge = `read -r word id; cat ${store}/$id`;
  fs.writeFileSync(
    program,
    `#!/bin/sh\ncase $1 in clean) ${clean} ;; smudge) ${smudge} ;; esac\n`,
    {
      mode: 0o755,
    },
  );
  for (const what of ["clean", "smudge"])
    repo.git("config", `filter.large.${what}`, `${program} ${what}`);
  repo.git("config", "filter.large.required", "true");
  repo.commit({ ".gitattributes": "*.bin filter=large\n" });
  repo.commit({ "x.bin": "content\n" });
  expect(repo.git("cat-file", "-p", "HEAD:x.bin")).toMatch(/^pointer /);
  const found = await landed(place, "cat x.bin > seen; echo more >> x.bin", "x.bin");
  expect(found).toMatch(/^pointer /);
  expect(fs.readFileSync(join(store, found.slice("pointer ".length)), "utf8")).toBe(
    "content\nmore\n",
  );
  expect(repo.git("cat-file", "-p", `${TARGET}:seen`)).toBe("content");
});

test("line ends are stored as the settings of the repository say", async () => {
  const place = newPlace();
  place.repo.git("config", "core.autocrlf", "true");
  place.repo.commit({ "x.txt": "one\r\ntwo\r\n" });
  expect(place.repo.git("cat-file", "-p", "HEAD:x.txt")).toBe("one\ntwo");
  const script = "grep -c '\r' x.txt > seen.txt; printf 'three\\r\\n' >> x.txt";
  expect(await landed(place, script, "x.txt")).toBe("one\ntwo\nthree");
  expect(place.repo.git("cat-file", "-p", `${TARGET}:seen.txt`)).toBe("2");
});

test("a file in another encoding is stored as UTF-8", async () => {
  const place = newPlace();
  place.repo.commit({ ".gitattributes": "*.u16 text working-tree-encoding=UTF-16LE\n" });
  fs.writeFileSync(join(place.repo.dir, "x.u16"), Buffer.from("grün\n", "utf16le"));
  place.repo.commit({});
  const script =
    "iconv -f UTF-16LE -t UTF-8 x.u16 > seen; printf 'b\\0l\\0a\\0u\\0\\n\\0' >> x.u16";
  expect(await landed(place, script, "x.u16")).toBe("grün\nblau");
  expect(place.repo.git("cat-file", "-p", `${TARGET}:seen`)).toBe("grün");
});
