/*
 * Loaded into Debian's cron: its clock is ours and jumps to the end of each sleep, and of a job only the time and the command are written
 * down. What is due when is decided by cron alone.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static time_t now, end;
static int in_job = 0;

static void read_span(void) {
  if (end != 0) return;
  now = atol(getenv("CRON_FROM"));
  end = atol(getenv("CRON_TO"));
}

time_t time(time_t *where) {
  read_span();
  if (where != NULL) *where = now;
  return now;
}

unsigned int sleep(unsigned int seconds) {
  read_span();
  /* All jobs of a minute end before the next one. */
  while (waitpid(-1, NULL, 0) > 0) {}
  now += seconds;
  if (now > end) _exit(0);
  return 0;
}

extern pid_t __libc_fork(void);

/* A job forks once more for its command: that is the process which says what it is. */
pid_t fork(void) {
  if (in_job) return 0;
  pid_t pid = __libc_fork();
  if (pid == 0) in_job = 1;
  return pid;
}

/* The daemon says what is wrong with a crontab; a job says its command, and goes no further. */
void __syslog_chk(int priority, int flag, const char *format, ...) {
  char text[2048];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  char line[2200];
  int size = snprintf(line, sizeof line, "%ld %s\n", (long)now, text);
  int fd = open(getenv("CRON_LOG"), O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (fd >= 0 && write(fd, line, size) == size) close(fd);
  if (in_job && strstr(text, " CMD ") != NULL) _exit(0);
}

int execle(const char *path, const char *arg, ...) { _exit(1); }
int execvp(const char *file, char *const argv[]) { _exit(1); }

/* No session of the system is opened for jobs that do not run. */
int pam_start(const char *s, const char *u, const void *c, void **handle) { *handle = NULL; return 0; }
int pam_set_item(void *h, int type, const void *item) { return 0; }
int pam_acct_mgmt(void *h, int flags) { return 0; }
int pam_setcred(void *h, int flags) { return 0; }
int pam_open_session(void *h, int flags) { return 0; }
int pam_close_session(void *h, int flags) { return 0; }
int pam_end(void *h, int status) { return 0; }
char **pam_getenvlist(void *h) { return calloc(1, sizeof(char *)); }
