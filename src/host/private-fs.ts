/** The `fs` module for packages that leave the rights of new directories to the umask. Here only our user gets rights. */
import fs from "node:fs";

export const privateFs: object = {
  ...fs,
  mkdir: (path: string, done: fs.NoParamCallback): void => fs.mkdir(path, { mode: 0o700 }, done),
};

/** The same for the package that renews the supervisor's lock. @param told called with the error of each call, or null */
export function watchedFs(told: Record<"stat" | "utimes", (error: unknown) => void>): object {
  return {
    ...privateFs,
    stat: (path: string, done: (error: unknown, stats?: fs.Stats) => void) =>
      fs.stat(path, (error, stats) => {
        told.stat(error);
        done(error, stats);
      }),
    utimes: (path: string, atime: Date, mtime: Date, done: fs.NoParamCallback) =>
      fs.utimes(path, atime, mtime, (error) => {
        told.utimes(error);
        done(error);
      }),
  };
}
