/** Every bound of the product in one place, with the relations between them asserted. */

/** A task or command file above this size is refused unread (bytes). */
export const TASK_BYTES_MAX = 1024 * 1024;
/** Objects and arrays in a task may nest this deep. */
export const JSON_DEPTH_MAX = 64;
/** Lists and maps in a plan or in settings may nest this deep, payloads included. */
export const YAML_DEPTH_MAX = 128;
/** A plan or settings have at most so many keys, values, marks, comments and runs of spaces; a node of a plan has 60 to 90. */
export const YAML_PARTS_MAX = 2_000_000;
/** An object in a task has at most so many members: to read more would block the supervisor for too long. */
export const JSON_MEMBERS_MAX = 10_000;
/** What a program or handler says may nest this deep. */
export const OUTPUT_DEPTH_MAX = 512;
/** A record wraps a task, and what was said of it; so deep it is still read back. */
export const RECORD_DEPTH_MAX = 1024;
/** A journal record is one line of at most this many bytes, so that one write holds it whole. */
export const JOURNAL_RECORD_BYTES_MAX = 16 * 1024;
/** Telemetry that a full disk keeps in memory is bounded (bytes); the oldest is dropped and counted. */
export const JOURNAL_BUFFER_BYTES_MAX = 4 * 1024 * 1024;
/** A journal is rotated by rename above this size (bytes). */
export const JOURNAL_ROTATE_BYTES = 256 * 1024 * 1024;
/** The same for the history of kv. So much of its end at least is there: the last file that was rotated away stays. */
export const KV_HISTORY_ROTATE_BYTES = 64 * 1024 * 1024;
/** Tail of a program's output that travels in the result (bytes). */
export const OUTPUT_TAIL_BYTES_MAX = 64 * 1024;
/** Tail of a program's output in which a `<result>` block is looked for (bytes). */
export const RESULT_SCAN_BYTES_MAX = 1024 * 1024;
/** The supervisor accepts at most this many tasks in one tick. */
export const ACCEPTS_PER_TICK_MAX = 256;
/** One slice of a scan or tick blocks the event loop for at most about this long (ms). */
export const SLICE_MS_MAX = 8;
/** Tasks accepted ahead of free slots never exceed this. */
export const PREFETCH_MAX = 256;
/** Results of one worker that wait for the disk together; more would only use memory, and run again after a crash. */
export const UNSETTLED_MAX = 512;
/** A line of a batch has at most this number: what a file of the largest size could hold. */
export const BATCH_LINES_MAX = 2 ** 31;
/** A batch with more lines than this that are no task is something else: the result of each is many times its size. */
export const BAD_LINES_MAX = 100_000;
/** Lines of a batch that run at once in one worker process. */
export const BATCH_CONCURRENCY_MAX = 4096;
/** How often a supervisor looks at `processing/` while something runs or waits there (ms). */
export const RECOVER_MS = 400;
/** Slots over all worker processes. */
export const WORKERS_MAX = 1024;
/** Deepest `<id>`: also the part of a file name that people read. */
export const ID_CHARS_MAX = 96;
/** Most runs a task may ask for. */
export const MAX_ATTEMPTS_MAX = 1000;
/** No timer of Node waits longer (ms). */
export const TIMER_MS_MAX = 2_147_483_647;
/** One value in kv, as JSON (bytes). */
export const KV_VALUE_BYTES_MAX = 1024 * 1024;
/** All values of one node (bytes). */
export const KV_DOCUMENT_BYTES_MAX = 16 * 1024 * 1024;
/** A larger value stands in the history with its beginning only (bytes of JSON). */
export const KV_HISTORY_VALUE_BYTES_MAX = 4 * 1024;

if (JOURNAL_BUFFER_BYTES_MAX < 16 * JOURNAL_RECORD_BYTES_MAX) {
  throw new RangeError("the journal buffer must hold several records");
}
if (YAML_DEPTH_MAX < 2 * JSON_DEPTH_MAX) {
  throw new RangeError("a plan must hold the payloads of its nodes, and containers around them");
}
if (RECORD_DEPTH_MAX < OUTPUT_DEPTH_MAX + JSON_DEPTH_MAX) {
  throw new RangeError("a record must hold what may be said");
}
if (RESULT_SCAN_BYTES_MAX < OUTPUT_TAIL_BYTES_MAX) {
  throw new RangeError("a result block is looked for in at least the tail that is reported");
}
if (3 * KV_HISTORY_VALUE_BYTES_MAX > JOURNAL_RECORD_BYTES_MAX) {
  throw new RangeError("a shortened value must fit its history line, however it is escaped");
}
