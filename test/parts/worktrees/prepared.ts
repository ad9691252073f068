/** What many walks begin with is made once: each one gets it as it was then, under the same path. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { dirname, join } from "node:path";
import { tempDir } from "../../support/temp-dir.ts";
import type { Place } from "./place.ts";

interface Kept<T> {
  made: T;
  dir: string;
  copy: string;
}

/** Walks that go on at once have one each. */
export class Prepared<T extends { place: Place }> {
  private readonly kept = new Map<string, Kept<T>[]>();
  private readonly make: (key: string) => Promise<T>;

  constructor(make: (key: string) => Promise<T>) {
    this.make = make;
  }

  /** @param key what the walk begins with. @param walk one that throws leaves its place as it is */
  async use<R>(key: string, walk: (made: T) => Promise<R>): Promise<R> {
    const one = this.again(key) ?? (await this.anew(key));
    const result = await walk(one.made);
    this.kept.set(key, [...(this.kept.get(key) ?? []), one]);
    return result;
  }

  private again(key: string): Kept<T> | undefined {
    const one = this.kept.get(key)?.pop();
    // Those of another test went with it.
    if (one === undefined || !fs.existsSync(one.copy)) return undefined;
    for (const name of fs.readdirSync(one.dir))
      fs.rmSync(join(one.dir, name), { recursive: true, force: true, maxRetries: 5 });
    copyAll(one.copy, one.dir);
    return one;
  }

  private async anew(key: string): Promise<Kept<T>> {
    const made = await this.make(key);
    const { dir } = made.place.pool;
    const copy = join(tempDir(undefined, dirname(dir)), "copy");
    fs.mkdirSync(copy);
    copyAll(dir, copy);
    return { made, dir, copy };
  }
}

function copyAll(from: string, to: string): void {
  execFileSync("cp", ["-a", `${from}/.`, to]);
}
