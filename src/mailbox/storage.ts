/**
 * The storage port: the few file-system operations that the mailbox protocol is made of. Synchronous, because on the
 * hot path a synchronous call costs a fifth of a promised one; only the durability barriers wait. A simulated file
 * system stands in here for crash exploration. Errors are Node's system errors (`code` = "ENOENT", "EEXIST", …).
 */
export interface FileFacts {
  dev: number;
  ino: number;
  size: number;
  mtimeMs: number;
  ctimeMs: number;
  nlink: number;
  uid: number;
  mode: number;
  kind: "file" | "directory" | "other";
}

/** A listing that is read in pieces, so that a directory of a million names blocks no process. */
export interface Walk {
  /** The next names, at most about `max`; empty at the end. Names that vanish or appear in between may be missed. */
  next(max: number): string[];
  close(): void;
}

export interface Storage {
  list(dir: string): string[];
  walk(dir: string): Walk;
  /** The bytes of a listed name that is not UTF-8. */
  rawName(dir: string, shown: string): Buffer | undefined;
  /** lstat; undefined when there is no such file. */
  look(path: string | Buffer): FileFacts | undefined;
  /**
   * Opens without following links or waiting for writers, and reads a regular file of at most `bytesMax`.
   * `bytes` is undefined when it is larger, or not a regular file.
   */
  read(path: string, bytesMax: number): { facts: FileFacts; bytes: Buffer | undefined };
  /** Creates a file that must not exist, whole; on failure nothing is left. Mode 0600. */
  create(path: string, bytes: Buffer): void;
  /** Fails with EEXIST when `to` exists: the only way to publish. */
  link(from: string, to: string): void;
  /** Replaces `to` silently when it exists. `from` is bytes when the name is not UTF-8. */
  rename(from: string | Buffer, to: string): void;
  unlink(path: string): void;
  /** Sets mtime (epoch ms). */
  touch(path: string, mtimeMs: number): void;
  /**
   * Makes a directory, and what is missing above it; harmless when it is there.
   * @param missingMax ENOENT when more are missing, with the directory itself; any number when left out
   */
  makeDir(path: string, missingMax?: number): void;
  /** Makes the contents of these files durable; one waiting for all. */
  syncFiles(paths: readonly string[]): Promise<void>;
  /** Makes the names in these directories durable. */
  syncDirs(paths: readonly string[]): Promise<void>;
  /** The same, at once: for rare steps that must not be parted. */
  syncDirNow(path: string): void;
}
