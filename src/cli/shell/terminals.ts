/**
 * For processes that outlive their terminal: they end by the hang-up signal. In a normal exit Node would reset the terminal, and
 * abort because it is gone.
 */
import { isatty } from "node:tty";

/** @returns a function to call last: it does not return when a terminal that is there now is gone by then */
export function watchTerminals(): () => void {
  const terminals = [0, 1, 2].filter((fd) => isatty(fd));
  return () => {
    if (terminals.every((fd) => isatty(fd))) return;
    process.removeAllListeners("SIGHUP");
    process.kill(process.pid, "SIGHUP");
  };
}
