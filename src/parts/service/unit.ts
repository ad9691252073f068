/** Makes and reads the text of a systemd unit that runs a pool. Pure. See systemd.service(5), systemd.exec(5). */
import { MailchuteError } from "../../core/errors.ts";

export interface UnitFacts {
  /** The command line of `mailchute run`. Its paths are absolute. */
  argv: readonly string[];
  /** Absolute. */
  stateDir: string;
  /** PATH of the caller. The pool finds agents and programs with it. */
  path: string;
  /** True for a unit of the system, false for one of a user. */
  isSystem: boolean;
  /** Name or number of the user who runs a unit of the system; undefined for a unit of a user. */
  user: string | undefined;
  /** How long the pool may take to stop (ms). */
  stopMs: number;
}

/** Set in units of `mailchute service`: their supervisor tells systemd its state. */
export const UNIT_VARIABLE = "MAILCHUTE_SYSTEMD";
/** systemd kills and restarts a supervisor that has not worked for this long (s). */
const WATCHDOG_S = 60;
/** Pause before a restart (s). */
const RESTART_S = 5;
/** A stop may take at least this long before systemd kills what is left (s). */
const STOP_S_MIN = 90;

/** Rules that need no rights, so that they hold for units of users, too. */
const HARDENING = [
  "NoNewPrivileges=yes",
  "LockPersonality=yes",
  "RestrictRealtime=yes",
  "RestrictSUIDSGID=yes",
  "SystemCallArchitectures=native",
];
/** Agents keep files in the home directory, build in /tmp and may make namespaces, so these rules do not restrict that. */
const HARDENING_OF_SYSTEM = [
  "ProtectSystem=full",
  "ProtectKernelTunables=yes",
  "ProtectKernelModules=yes",
  "ProtectKernelLogs=yes",
  "ProtectClock=yes",
  "ProtectHostname=yes",
];

/** @throws MailchuteError for a path that no unit can hold */
export function makeUnit(facts: UnitFacts): string {
  const { argv, stateDir, path, isSystem, user, stopMs } = facts;
  const [program = "", ...args] = argv;
  const stopS = Math.max(STOP_S_MIN, Math.ceil(stopMs / 1000) + 30);
  const lines = [
    "# Made by `mailchute service`. Changes belong into a drop-in: systemctl edit.",
    "[Unit]",
    `Description=mailchute pool in ${specifier(line(stateDir))}`,
    ...(isSystem ? ["After=network-online.target", "Wants=network-online.target"] : []),
    // systemd tries for ever, because the next start may find a mended config or room on the disk.
    "StartLimitIntervalSec=0",
    "",
    "[Service]",
    "Type=notify",
    // The message comes from systemd-notify, a child of the supervisor.
    "NotifyAccess=all",
    `ExecStart=${[quote(executable(program)), ...args.map((word) => quote(word).replaceAll("$", "$$$$"))].join(" ")}`,
    `WorkingDirectory=${specifier(line(stateDir))}`,
    `Environment=${quote(`PATH=${path}`)}`,
    `Environment=${UNIT_VARIABLE}=1`,
    `EnvironmentFile=-${specifier(line(stateDir))}/service.env`,
    ...(user === undefined ? [] : [`User=${specifier(line(user))}`]),
    "Restart=on-failure",
    `RestartSec=${RESTART_S}`,
    // A wrong option stays wrong.
    "RestartPreventExitStatus=2",
    `WatchdogSec=${WATCHDOG_S}`,
    "WatchdogSignal=SIGKILL",
    // The supervisor stops its workers. What is left afterwards is killed.
    "KillMode=mixed",
    `TimeoutStopSec=${stopS}`,
    // A task that takes all memory must not end the pool.
    "OOMPolicy=continue",
    "Delegate=yes",
    "UMask=0077",
    ...HARDENING,
    ...(isSystem ? HARDENING_OF_SYSTEM : []),
    "",
    "[Install]",
    `WantedBy=${isSystem ? "multi-user.target" : "default.target"}`,
  ];
  return `${lines.join("\n")}\n`;
}

/** The state tree of a unit that `makeUnit` made; undefined for another file. */
export function treeOfUnit(text: string): string | undefined {
  const found = /^WorkingDirectory=(.*)$/m.exec(text)?.[1];
  return text.startsWith("# Made by `mailchute service`.") && found !== undefined
    ? found.replaceAll("%%", "%")
    : undefined;
}

/** The programs that the unit starts: Node and mailchute. */
export function programsOfUnit(text: string): string[] {
  const found = /^ExecStart="((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"/m.exec(text);
  return [found?.[1], found?.[2]?.replaceAll("$$", "$")].flatMap((word) =>
    word === undefined ? [] : [word.replace(/\\(.)/g, "$1").replaceAll("%%", "%")],
  );
}

function quote(word: string): string {
  return `"${specifier(line(word).replaceAll("\\", "\\\\").replaceAll('"', '\\"'))}"`;
}

/** @throws MailchuteError for a path that systemd cannot start, however it is quoted */
function executable(path: string): string {
  if (!/["'\\]/.test(path)) return path;
  throw new MailchuteError(
    "ErrUsage",
    "systemd starts no program with a quote or a backslash in its path",
    {
      path: JSON.stringify(path),
      phase: "service",
      hint: "install Node elsewhere",
    },
  );
}

/** `%` begins a specifier. */
function specifier(text: string): string {
  return text.replaceAll("%", "%%");
}

function line(text: string): string {
  // A backslash at the end would join the next line.
  if (!/[\u0000-\u001f\u007f]|\\$/.test(text)) return text;
  throw new MailchuteError(
    "ErrUsage",
    "a path with a control character, or a backslash at its end, cannot stand in a unit",
    {
      path: JSON.stringify(text),
      phase: "service",
      hint: "move the state tree to a path without it",
    },
  );
}
