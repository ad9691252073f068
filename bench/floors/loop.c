/*
 * The file-system calls that one task costs, and nothing else: what no program on this disk can be faster than by much.
 * The same loop as loop.mjs; see there for the modes. Prints one JSON object.
 *
 *   cc -O2 -o loop loop.c && ./loop DIR COUNT submit|protocol|minimal
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { GROUP = 8, BODY = 600, RECORD = 860, LINE = 215, PATH_MAX_BYTES = 512 };

static const char *dir;
static char body[BODY], record[RECORD], lines[GROUP * 2 * LINE], in[BODY + 1];
static int events_fd, leases_fd;

static void check(int ok, const char *what)
{
  if (ok) return;
  perror(what);
  exit(1);
}

static double now_s(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static char *at(char *path, const char *tray, int i, const char *suffix)
{
  snprintf(path, PATH_MAX_BYTES, "%s/%s/t%d%s", dir, tray, i, suffix);
  return path;
}

static const char INBOX[] = ".json";
static const char READY[] = "@abcdefgh.1~ready.json";
static const char CLAIMED[] = "@abcdefgh.1~w-0123456789ab-abc-abcd-1.json";
static const char MARKER[] = "@abcdefgh.1~ok-0123456789ab-abc-abcd-1.json";
static const char RESULT[] = "_result.json";

static void move(int i, const char *from_tray, const char *from, const char *to_tray, const char *to)
{
  char a[PATH_MAX_BYTES], b[PATH_MAX_BYTES];
  check(rename(at(a, from_tray, i, from), at(b, to_tray, i, to)) == 0, "rename");
}

static void create(const char *tray, int i, const char *suffix, const char *bytes, size_t size)
{
  char a[PATH_MAX_BYTES];
  int fd = open(at(a, tray, i, suffix), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  check(fd >= 0, "create");
  check(write(fd, bytes, size) == (ssize_t)size, "write");
  close(fd);
}

static void publish(int i, const char *from_tray, const char *from, const char *to_tray, const char *to)
{
  char a[PATH_MAX_BYTES], b[PATH_MAX_BYTES];
  check(link(at(a, from_tray, i, from), at(b, to_tray, i, to)) == 0, "link");
}

static void drop(const char *tray, int i, const char *suffix)
{
  char a[PATH_MAX_BYTES];
  check(unlink(at(a, tray, i, suffix)) == 0, "unlink");
}

/* As storage reads: open without following links, look, read. */
static void read_whole(const char *tray, int i, const char *suffix)
{
  char a[PATH_MAX_BYTES];
  struct stat facts;
  int fd = open(at(a, tray, i, suffix), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);
  check(fd >= 0, "open");
  check(fstat(fd, &facts) == 0, "fstat");
  check(pread(fd, in, BODY + 1, 0) == BODY, "read");
  close(fd);
}

static void append(int fd, int count)
{
  size_t size = (size_t)count * LINE;
  check(write(fd, lines, size) == (ssize_t)size, "append");
}

static void submit(int i)
{
  create(".tmp", i, INBOX, body, BODY);
  publish(i, ".tmp", INBOX, "inbox", INBOX);
  drop(".tmp", i, INBOX);
}

static void run_group(int from, int to)
{
  int n = to - from;
  for (int i = from; i < to; i++) read_whole("inbox", i, INBOX);
  append(events_fd, n);
  for (int i = from; i < to; i++) move(i, "inbox", INBOX, "processing", READY);
  for (int i = from; i < to; i++) {
    move(i, "processing", READY, "processing", CLAIMED);
    read_whole("processing", i, CLAIMED);
  }
  append(leases_fd, n);
  append(events_fd, 2 * n);
  for (int i = from; i < to; i++) create(".tmp", i, MARKER, record, RECORD);
  for (int i = from; i < to; i++) move(i, "processing", CLAIMED, "processing", MARKER);
  for (int i = from; i < to; i++) publish(i, ".tmp", MARKER, "outbox", RESULT);
  append(leases_fd, n);
  append(events_fd, n);
  for (int i = from; i < to; i++) {
    drop("processing", i, MARKER);
    drop(".tmp", i, MARKER);
  }
}

static void run_minimal(int i)
{
  append(events_fd, 1);
  move(i, "inbox", INBOX, "processing", INBOX);
  append(events_fd, 1);
  read_whole("processing", i, INBOX);
  append(events_fd, 1);
  create(".tmp", i, RESULT, record, RECORD);
  move(i, ".tmp", RESULT, "outbox", RESULT);
  append(events_fd, 1);
  drop("processing", i, INBOX);
}

static int open_journal(const char *name)
{
  char path[PATH_MAX_BYTES];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  check(fd >= 0, path);
  return fd;
}

int main(int argc, char **argv)
{
  static const char *const trays[] = {"inbox", "processing", "outbox", ".tmp"};
  if (argc != 4) return 2;
  dir = argv[1];
  int count = atoi(argv[2]);
  const char *mode = argv[3];
  for (int t = 0; t < 4; t++) {
    char path[PATH_MAX_BYTES];
    snprintf(path, sizeof path, "%s/%s", dir, trays[t]);
    check(mkdir(path, 0700) == 0, path);
  }
  memset(body, 'x', sizeof body);
  memset(record, 'x', sizeof record);
  memset(lines, 'x', sizeof lines);
  for (int l = 0; l < GROUP * 2; l++) lines[(l + 1) * LINE - 1] = '\n';
  events_fd = open_journal("events.jsonl");
  leases_fd = open_journal("leases.jsonl");

  double t0 = now_s();
  for (int i = 0; i < count; i++) submit(i);
  double t1 = now_s();
  if (strcmp(mode, "protocol") == 0)
    for (int i = 0; i < count; i += GROUP) run_group(i, i + GROUP < count ? i + GROUP : count);
  else if (strcmp(mode, "minimal") == 0)
    for (int i = 0; i < count; i++) run_minimal(i);
  double t2 = now_s();
  printf("{\"submit_s\":%.6f,\"drain_s\":%.6f}\n", t1 - t0, t2 - t1);
  return 0;
}
