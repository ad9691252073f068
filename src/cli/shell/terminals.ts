/**
 * For what outlives its terminal: ends by the hang-up itself then. At an exit of its own Node would set the terminal back, and
 * abort because that is gone.
 */
import { isatty } from "node:tty";

/** @returns to be called as the last thing: does not come back when a terminal that is there now is gone by then */
export function watchTerminals(): () => void {
  const terminals = [0, 1, 2].filter((fd) => isatty(fd));
  return () => {
    if (terminals.every((fd) => isatty(fd))) return;
    process.removeAllListeners("SIGHUP");
    process.kill(process.pid, "SIGHUP");
  };
}
