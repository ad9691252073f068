/** All limits of mailchute in one place. Checks below make sure that they fit each other. */

/** How long the note of a task that is submitted once is kept (days). No caller may submit its id again after that. */
export const ONCE_DAYS = 30;
/** The longest window of a `dedup_key` (ms). Its note is kept this long after its task arrived. */
export const DEDUP_WINDOW_MS_MAX = 30 * 24 * 3600 * 1000;
/** A task or command file above this size is refused unread (bytes). */
export const TASK_BYTES_MAX = 1024 * 1024;
/** Objects and arrays in a task may nest this deep. */
export const JSON_DEPTH_MAX = 64;
/** Lists and maps in a plan or in settings may nest this deep, payloads included. */
export const YAML_DEPTH_MAX = 128;
/** At most this many keys, values, marks, comments and runs of spaces in a plan or settings. A node of a plan has 60 to 90. */
export const YAML_PARTS_MAX = 2_000_000;
/** An object in a task has at most this many members. Reading more would block the supervisor for too long. */
export const JSON_MEMBERS_MAX = 10_000;
/** The output of a program or handler may nest this deep. */
export const OUTPUT_DEPTH_MAX = 512;
/** A record holds a task and the output of its run, so it may nest deeper than either. */
export const RECORD_DEPTH_MAX = 1024;
/** A journal record is one line of at most this many bytes, so that one write call writes the whole record. */
export const JOURNAL_RECORD_BYTES_MAX = 16 * 1024;
/** When the disk is full, at most this much of a journal waits in memory (bytes). The oldest records are dropped and counted. */
export const JOURNAL_BUFFER_BYTES_MAX = 4 * 1024 * 1024;
/** A journal is rotated by rename above this size (bytes). */
export const JOURNAL_ROTATE_BYTES = 256 * 1024 * 1024;
/** Of a larger journal only the end is read: it is rotated long before, so something else has the name. */
export const JOURNAL_READ_BYTES_MAX = 4 * JOURNAL_ROTATE_BYTES;
/** So much of its end (bytes). */
export const JOURNAL_END_BYTES = 64 * 1024 * 1024;
/** The same for the history of kv. After a rotation, at least this much of it is kept in the last rotated file. */
export const KV_HISTORY_ROTATE_BYTES = 64 * 1024 * 1024;
/** How much of the end of a program's output is put into the result (bytes). */
export const OUTPUT_TAIL_BYTES_MAX = 64 * 1024;
/** How much of the end of a program's output is searched for a `<result>` block (bytes). */
export const RESULT_SCAN_BYTES_MAX = 1024 * 1024;
/** The supervisor accepts at most this many tasks in one tick. */
export const ACCEPTS_PER_TICK_MAX = 256;
/** The largest weight of a task in its group. */
export const WEIGHT_MAX = 1024;
/** One task or group names at most this many limits. Each start checks every different list of limits among the waiting tasks. */
export const TASK_LIMITS_MAX = 8;
/** The largest `burst` of a rate (starts). */
export const BURST_MAX = 100_000;
/** The names of limits are parts of file names. */
export const LIMIT_NAME = "^[A-Za-z0-9][A-Za-z0-9-]{0,62}$";
/** A scan or tick blocks the event loop for at most about this long at a time (ms). */
export const SLICE_MS_MAX = 8;
/** A larger record is not read (bytes): JavaScript has no longer texts. */
export const RECORD_BYTES_MAX = 512 * 1024 * 1024;
/** At most this many tasks are accepted before a slot is free for them. */
export const PREFETCH_MAX = 256;
/** At most this many results of one worker wait for the disk together. More would use memory, and run again after a crash. */
export const UNSETTLED_MAX = 512;
/** The highest line number in a batch: no file of the largest allowed size has more lines. */
export const BATCH_LINES_MAX = 2 ** 31;
/** A batch with more invalid lines than this fails. It is probably another kind of file, and each result would be far larger. */
export const BAD_LINES_MAX = 100_000;
/** At most this many lines of a batch run at once in one worker process. */
export const BATCH_CONCURRENCY_MAX = 4096;
/** How often a supervisor looks at `processing/` while something runs or waits there (ms). */
export const RECOVER_MS = 400;
/** At most this many slots in all worker processes together. */
export const WORKERS_MAX = 1024;
/** Longest id (characters). It is also part of file names. */
export const ID_CHARS_MAX = 96;
/** Most runs a task may ask for. */
export const MAX_ATTEMPTS_MAX = 1000;
/** The longest time that a timer of Node can wait (ms). */
export const TIMER_MS_MAX = 2_147_483_647;
/** Largest value in kv, as JSON (bytes). */
export const KV_VALUE_BYTES_MAX = 1024 * 1024;
/** All values of one node together (bytes). */
export const KV_DOCUMENT_BYTES_MAX = 16 * 1024 * 1024;
/** The history holds only the beginning of a value that is larger than this (bytes of JSON). */
export const KV_HISTORY_VALUE_BYTES_MAX = 4 * 1024;

if (JOURNAL_BUFFER_BYTES_MAX < 16 * JOURNAL_RECORD_BYTES_MAX) {
  throw new RangeError("the journal buffer must hold several records");
}
if (YAML_DEPTH_MAX < 2 * JSON_DEPTH_MAX) {
  throw new RangeError("a plan must hold payloads, and the lists and maps around them");
}
if (RECORD_DEPTH_MAX < OUTPUT_DEPTH_MAX + JSON_DEPTH_MAX) {
  throw new RangeError("a record must hold the deepest output and the deepest task");
}
if (RESULT_SCAN_BYTES_MAX < OUTPUT_TAIL_BYTES_MAX) {
  throw new RangeError("the part that is searched for a result must hold the reported part");
}
if (3 * KV_HISTORY_VALUE_BYTES_MAX > JOURNAL_RECORD_BYTES_MAX) {
  throw new RangeError("a shortened value must fit into a line of the history, even when escaped");
}

/** A session waits at most this long for its own account or agent, because a new session would cost more (ms). */
export const SESSION_WAIT_MS = 5 * 60_000;
