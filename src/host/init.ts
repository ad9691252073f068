/**
 * Does one job of an init, for a process that is pid 1 of a container. A process whose parent has ended becomes a child of pid 1,
 * and stays a zombie until pid 1 waits for it. Node waits only for processes that it started itself. So this process starts itself
 * again, below a small program that adopts such processes and waits for all. That program is written in perl, which Debian images have.
 */
import { type ChildProcess, spawnSync } from "node:child_process";
import os from "node:os";
import { spawn } from "./spawn.ts";

/** The number of the system call prctl(2), by Node's name of the architecture. */
const PRCTL: Readonly<Partial<Record<NodeJS.Architecture, number>>> = {
  x64: 157,
  arm64: 167,
  riscv64: 167,
  loong64: 167,
  ia32: 172,
  arm: 172,
  s390x: 172,
  ppc64: 171,
};
const PR_SET_CHILD_SUBREAPER = 36;
const FORWARDED = ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const;

/**
 * Adopts the orphans below it, starts the program, passes signals on to it, waits for all, and ends as the program does. Its first
 * argument is the number of prctl; without a second one it only reports whether it can adopt.
 */
const ADOPTER = `
my $prctl = 0 + shift @ARGV;
syscall($prctl, ${PR_SET_CHILD_SUBREAPER}, 1, 0, 0, 0) == 0 or exit 125;
exit 0 unless @ARGV;
my $pid;
my @early;
for my $name (qw(TERM INT HUP USR1 USR2)) {
  $SIG{$name} = sub { if ($pid) { kill $name, $pid } else { push @early, $name } };
}
my $child = fork();
exit 125 unless defined $child;
if ($child == 0) {
  $SIG{$_} = 'DEFAULT' for qw(TERM INT HUP USR1 USR2);
  exec { $ARGV[0] } @ARGV;
  exit 127;
}
$pid = $child;
kill $_, $pid for @early;
for (;;) {
  my $ended = waitpid(-1, 0);
  my $status = $?;
  next if $ended == -1 && $! == 4; # EINTR
  last if $ended == -1;
  next if $ended != $pid;
  exit(($status & 127) ? 128 + ($status & 127) : $status >> 8);
}
exit 125;
`;

/**
 * Runs this same command line again, below a program that waits for orphans. Signals are passed on.
 * @returns the exit code (128 plus the number of a signal); undefined when there is no such program here
 */
export async function runBelowInit(): Promise<number | undefined> {
  const adopter = findAdopter();
  if (adopter === undefined) return undefined;
  const [program = "", ...args] = adopter;
  const own = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  // Use a new session: signals of the terminal then reach only this process, which passes each on once.
  const child = spawn(program, [...args, ...own], { stdio: "inherit", detached: true });
  for (const signal of FORWARDED) process.on(signal, () => child.kill(signal));
  return endOf(child);
}

/** The command that starts the adopter, without the arguments that it runs. It is tried out before it is used. */
function findAdopter(): string[] | undefined {
  const number = PRCTL[process.arch];
  if (number === undefined) return undefined;
  const adopter = ["perl", "-e", ADOPTER, String(number)];
  const { status } = spawnSync("perl", adopter.slice(1), { stdio: "ignore" });
  return status === 0 ? adopter : undefined;
}

function endOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) =>
      resolve(code ?? 128 + (os.constants.signals[signal ?? "SIGKILL"] ?? 0)),
    );
  });
}
