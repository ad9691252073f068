/** Replaces the small JSON documents of a state tree, and other small files, whole. What only reads them does not load the package for it. */
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import writeFileAtomic from "write-file-atomic";
import { type ReplaceOptions, syncDir } from "./documents.ts";
import { makeDirs } from "./make-dirs.ts";

/**
 * Replaces a whole document. It stages the new one in a `.tmp` beside it, and checks its size before it publishes it, because
 * write-file-atomic reports success on a full disk.
 */
export function replaceDocument(path: string, value: object, options: ReplaceOptions = {}): void {
  replaceText(path, `${JSON.stringify(value, null, 2)}\n`, options);
}

/** Replaces a file by this text, like `replaceDocument`. */
export function replaceText(path: string, text: string, options: ReplaceOptions = {}): void {
  const isDurable = options.isDurable === true;
  const stagingDir = options.stagingDir ?? join(dirname(path), ".tmp");
  makeDirs(stagingDir, options.missingMax);
  const staged = join(stagingDir, `${basename(path)}.${process.pid}`);
  try {
    writeFileAtomic.sync(staged, text, { ...rightsLike(options.like), fsync: isDurable });
    if (fs.statSync(staged).size !== Buffer.byteLength(text)) {
      throw Object.assign(new Error(`ENOSPC: ${path} could not be written whole`), {
        code: "ENOSPC",
      });
    }
    options.beforePublish?.();
    fs.renameSync(staged, path);
    if (isDurable) syncDir(dirname(path));
  } catch (error) {
    fs.rmSync(staged, { force: true });
    throw error;
  }
}

function rightsLike(stats: fs.Stats | undefined): writeFileAtomic.Options {
  if (stats === undefined) return { mode: 0o600 };
  return { mode: stats.mode & 0o7777, chown: { uid: stats.uid, gid: stats.gid } };
}
