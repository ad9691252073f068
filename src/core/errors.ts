/** The errors that a program can catch: one class for each code. Each says the path, the phase and what to do. */

export interface ErrorDetails {
  /** The file or directory concerned. */
  path?: string;
  /** The task or command concerned. */
  id?: string;
  /** The step that failed: "open", "enqueue", "claim", "settle", … */
  phase?: string;
  /** What the reader can do about it, as an imperative sentence. */
  hint?: string;
  /** Byte offset of the fault in the file. */
  offset?: number;
  /** The wrong value. The message describes only its type, because the value may be a secret. */
  found?: unknown;
  cause?: unknown;
}

/** Base of all operating errors. `code` is stable and equals the class name. */
export class MailchuteError extends Error {
  readonly path?: string;
  readonly id?: string;
  readonly phase?: string;
  readonly hint?: string;
  readonly offset?: number;
  /** See `ErrorDetails`. Not enumerable, so that code that prints or stores the whole error leaves it out. */
  declare readonly found?: unknown;

  constructor(
    readonly code: string,
    message: string,
    details: ErrorDetails = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = code;
    if (details.path !== undefined) this.path = details.path;
    if (details.id !== undefined) this.id = details.id;
    if (details.phase !== undefined) this.phase = details.phase;
    if (details.hint !== undefined) this.hint = details.hint;
    if (details.offset !== undefined) this.offset = details.offset;
    if (details.found !== undefined)
      Object.defineProperty(this, "found", { value: details.found, enumerable: false });
  }
}

/** The mailbox directory is missing, unsafe or cannot be written. */
export class ErrMailboxDir extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrMailboxDir", message, details);
  }
}

/** A task or command of this id is already somewhere in the mailbox. */
export class ErrTaskExists extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrTaskExists", message, details);
  }
}

/** Nothing is waiting that this caller could claim. */
export class ErrNoTasks extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrNoTasks", message, details);
  }
}

/** No task of this id is in any tray. */
export class ErrTaskNotFound extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrTaskNotFound", message, details);
  }
}

/** The task does not start however long the pool runs: a person has to act. */
export class ErrTaskStuck extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrTaskStuck", message, details);
  }
}

/** The output of a task does not match its schema. */
export class ErrInvalidResult extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrInvalidResult", message, details);
  }
}

/** The bytes are not a task: they are not JSON, not an object, or a field breaks a rule. */
export class ErrInvalidTask extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrInvalidTask", message, details);
  }
}

/** The bytes or arguments are not a command. */
export class ErrInvalidCommand extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrInvalidCommand", message, details);
  }
}

/** `config.yaml`, the environment or a flag holds a value that cannot be used. */
export class ErrInvalidConfig extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrInvalidConfig", message, details);
  }
}

/** A plugin cannot be loaded, is for another version of the interface, or breaks its rules. */
export class ErrPlugin extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrPlugin", message, details);
  }
}

/** `roadmap.yaml` breaks a rule, or a change to it would. */
export class ErrInvalidRoadmap extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrInvalidRoadmap", message, details);
  }
}

/** The file holds no list of tasks: no box, not UTF-8, too large; or the notes of the list are damaged. */
export class ErrInvalidList extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrInvalidList", message, details);
  }
}

/** The request does not fit the state of the task. */
export class ErrInvalidTransition extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrInvalidTransition", message, details);
  }
}

/** Another process has taken the lease, so nothing was changed (fencing). */
export class ErrLeaseLost extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrLeaseLost", message, details);
  }
}

/** A node, key or value that kv does not accept. */
export class ErrInvalidKv extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrInvalidKv", message, details);
  }
}

/** A run tried to write a key of another node. It may write its own keys and those of the scope `__run__`. */
export class ErrForeignKey extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrForeignKey", message, details);
  }
}

/** Another live supervisor owns this state tree. */
export class ErrSupervisorRunning extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrSupervisorRunning", message, details);
  }
}

/** No supervisor runs on this state tree, or it ended while the caller waited for it. */
export class ErrSupervisorGone extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrSupervisorGone", message, details);
  }
}

/** A message, an address, a scope or a reader of mail breaks a rule. */
export class ErrInvalidMessage extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrInvalidMessage", message, details);
  }
}

/** git refused a call, or the repository cannot be used as it is. */
export class ErrGit extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrGit", message, details);
  }
}

/** The file system refused an operation (full disk, read-only, I/O error). Trying again may help. */
export class ErrIo extends MailchuteError {
  constructor(message: string, details?: ErrorDetails) {
    super("ErrIo", message, details);
  }
}

/** The system error code (`ENOENT`, `ENOSPC`, …) of a thrown value, or "". */
export function systemCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}

/**
 * Whether the operating system refused something. Node has no names for some of the system's errors, such as that of a damaged
 * file system. Their code is "Unknown system error -117".
 */
export function isSystemError(error: unknown): boolean {
  return /^(?:E[A-Z0-9]+|Unknown system error -?\d+)$/.test(systemCode(error));
}

/** The message of a thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
