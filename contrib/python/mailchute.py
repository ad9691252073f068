#!/usr/bin/env python3
"""mailchute for Python: one file, standard library only, Python 3.8 or newer.

    from mailchute import Mailchute

    mailchute = Mailchute("state")
    id = mailchute.submit({"exec": ["make", "test"]})
    end = mailchute.wait(id, timeout=600)
    print(end["status"], end.get("output", end.get("error")))

A task is safe when `submit` returns, also from a power cut and when no pool runs. It is never written over another one. As a
program: `mailchute.py submit [ID] < task.json`, `wait ID`, `result ID`, `command NAME [ARGS]`, `list`; the state tree is
MAILCHUTE_STATE, or ./state. The protocol is docs/protocol.md of the package.
"""

import json
import os
import re
import secrets
import sys
import time

__all__ = ["Mailchute", "MailchuteError"]

TASK_BYTES_MAX = 1024 * 1024
BODY = ("exec", "agent", "prompt", "payload", "description", "title")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}\Z")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)", re.IGNORECASE)
EXITS = {
    "ErrUsage": 2,
    "ErrInvalidTask": 2,
    "ErrInvalidCommand": 2,
    "ErrTaskNotFound": 3,
    "ErrTaskExists": 4,
    "ErrMailboxDir": 73,
    "ErrIo": 74,
    "ErrWaitTimedOut": 124,
}


class MailchuteError(Exception):
    """What a program can catch; `code` is one of docs/errors.md, or ErrWaitTimedOut."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Mailchute:
    """A state tree: a folder with `mailbox/` and `control/`."""

    def __init__(self, state=None):
        self.state = os.path.abspath(state or os.environ.get("MAILCHUTE_STATE") or "state")
        self.tasks = os.path.join(self.state, "mailbox")
        self.control = os.path.join(self.state, "control")
        if not os.path.isdir(os.path.join(self.tasks, "inbox")):
            raise MailchuteError("ErrMailboxDir", "%s is no state tree; `mailchute init` makes one" % self.state)

    def submit(self, task, id=None):
        """Submits a task (a dict) and returns its id. The same task may be sent again: nothing changes."""
        return self.send(task, id)[0]

    def send(self, task, id=None):
        """Like `submit`. Returns (id, "submitted"), or (id, "unchanged") when the same task is there already."""
        if not isinstance(task, dict):
            raise MailchuteError("ErrInvalidTask", "a task is a JSON object")
        id = id if id is not None else task.get("id")
        id = new_id("t") if id is None else check_id(id)
        if task.get("id", id) != id:
            raise MailchuteError("ErrInvalidTask", "the task says id %r, and is sent as %r" % (task["id"], id))
        if not any(task.get(name) is not None for name in BODY):
            raise MailchuteError("ErrInvalidTask", "nothing to run: none of %s is given" % ", ".join(BODY))
        data = to_bytes(dict(task, id=id))
        taken = self._holder(id)
        if taken is not None:
            if not _holds(taken, data):
                raise MailchuteError("ErrTaskExists", "another task %r is there already: %s" % (id, taken))
            _sync_dir(os.path.join(self.tasks, "inbox"))
            return id, "unchanged"
        return id, _publish(self.tasks, id, data)

    def wait(self, id, timeout=None):
        """Waits for the end of a task and returns its record: `status` is "completed" or "failed"."""
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = 0.01
        while True:
            record = self.result(id)
            if record is not None:
                return record
            if deadline is not None and time.monotonic() >= deadline:
                raise MailchuteError("ErrWaitTimedOut", "%s has not ended in time" % id)
            left = pause if deadline is None else min(pause, max(0.0, deadline - time.monotonic()))
            time.sleep(left)
            pause = min(pause * 1.5, 0.25)

    def result(self, id):
        """The record of a task that has ended; None while it waits or runs."""
        check_id(id)
        # A move between two looks can hide a task, but hardly several times in a row.
        for look in range(4):
            if look > 0:
                time.sleep(0.015)
            record = _read(os.path.join(self.tasks, "outbox", id + "_result.json"))
            if record is not None:
                return record
            # A failed task that was put back keeps its record until the retry is complete.
            if self._is_open(id):
                return None
            record = _read(os.path.join(self.tasks, "failed", id + "_error.json"))
            if record is not None and not self._is_open(id):
                return record
        record = self._refusal(id)
        if record is not None:
            return record
        raise MailchuteError("ErrTaskNotFound", "no tray has a task %r" % id)

    def command(self, name, args=None, timeout=None):
        """Gives the supervisor a command (see docs/commands.md) and waits for what it did. With timeout=0 returns at once, with None."""
        id = new_id("c")
        body = {"id": id, "command": name, "args": args or {}, "created_at": int(time.time())}
        if not os.path.isdir(os.path.join(self.control, "inbox")):
            raise MailchuteError("ErrMailboxDir", "%s is missing; `mailchute init` makes it" % self.control)
        _publish(self.control, id, to_bytes(body))
        if timeout == 0:
            return None
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            for path in (os.path.join("outbox", id + "_result.json"), os.path.join("failed", id + "_error.json")):
                record = _read(os.path.join(self.control, path))
                if record is not None and record.get("status") in ("completed", "done"):
                    return record.get("result") or {}
                if record is not None:
                    raise MailchuteError(record.get("code") or "ErrInvalidCommand", record.get("error") or "it failed")
            if deadline is not None and time.monotonic() >= deadline:
                raise MailchuteError("ErrWaitTimedOut", "no answer in time; the command %s waits for a supervisor" % id)
            time.sleep(0.02)

    def cancel(self, id, timeout=None):
        """Ends a task for good."""
        return self.command("cancel", {"node": check_id(id), "final": True}, timeout)

    def retry(self, id, timeout=None):
        """Puts a failed task back into the inbox."""
        return self.command("retry", {"node": check_id(id)}, timeout)

    def list(self):
        """The ids of the tasks, by state."""
        inbox = _names(os.path.join(self.tasks, "inbox"))
        running = {name.split("@")[0] for name in _names(os.path.join(self.tasks, "processing"))}
        return {
            "waiting": [name[:-5] for name in inbox if name.endswith(".json") and _ID.match(name[:-5])],
            "running": sorted(id[:-5] if id.endswith(".json") else id for id in running),
            "completed": self._settled("outbox", "_result.json"),
            "failed": self._settled("failed", "_error.json"),
        }

    def _settled(self, tray, ending):
        names = _names(os.path.join(self.tasks, tray))
        return [name[: -len(ending)] for name in names if name.endswith(ending) and "~" not in name]

    def _is_open(self, id):
        """Whether it waits or is being worked on. A marker that is being removed counts, too: its end is near."""
        return os.path.lexists(os.path.join(self.tasks, "inbox", id + ".json")) or self._live(id) is not None

    def _live(self, id):
        folded = id.lower()
        for name in _names(os.path.join(self.tasks, "processing")):
            if name.split("@")[0].lower() == folded or name.lower() == folded + ".json":
                return os.path.join(self.tasks, "processing", name)
        return None

    def _holder(self, id):
        """The file that has this id outside of the inbox, if any. The record of a refused file settles nothing."""
        live = self._live(id)
        if live is not None:
            return live
        for path in ("inbox/" + id + ".ndjson", "outbox/" + id + "_result.json", "failed/" + id + "_error.json"):
            path = os.path.join(self.tasks, path)
            if not os.path.lexists(path):
                continue
            record = _read(path) or {}
            if record.get("kind") != "invalid" or record.get("attempts") != 0:
                return path
        return None

    def _refusal(self, id):
        """The latest record of a file that was refused while another task had its id."""
        failed = os.path.join(self.tasks, "failed")
        found = [name for name in _names(failed) if name.startswith(id + "~") and name.endswith("_error.json")]
        paths = sorted((os.path.join(failed, name) for name in found), key=_mtime)
        return _read(paths[-1]) if paths else None


def new_id(prefix):
    return "%s-%x-%s" % (prefix, int(time.time() * 1000), secrets.token_hex(5))


def check_id(id):
    if not isinstance(id, str) or not _ID.match(id) or ".." in id or _DEVICE.match(id):
        raise MailchuteError("ErrInvalidTask", "bad id %r: letters, digits, '.', '_', '-', at most 96, no '..'" % (id,))
    return id


def to_bytes(value):
    try:
        data = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8") + b"\n"
    except (TypeError, ValueError) as error:
        raise MailchuteError("ErrInvalidTask", "it cannot be written as JSON: %s" % error)
    if len(data) > TASK_BYTES_MAX:
        raise MailchuteError("ErrInvalidTask", "it has %d bytes, more than %d" % (len(data), TASK_BYTES_MAX))
    return data


def _publish(mailbox, id, data):
    """Staged, synced, and linked: a link never replaces a file, and whoever reads the inbox sees all of it or nothing."""
    inbox = os.path.join(mailbox, "inbox")
    staged = os.path.join(mailbox, ".tmp", "%s-%s.json.tmp" % (id, secrets.token_hex(6)))
    target = os.path.join(inbox, id + ".json")
    try:
        _write(staged, data)
        try:
            os.link(staged, target)
            outcome = "submitted"
        except FileExistsError:
            if not _holds(target, data):
                raise MailchuteError("ErrTaskExists", "another task %r waits in the inbox" % id)
            outcome = "unchanged"
        finally:
            os.unlink(staged)
        _sync_dir(inbox)
        return outcome
    except OSError as error:
        raise MailchuteError("ErrIo", "cannot submit %s: %s" % (id, error))


def _write(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(fd)


def _sync_dir(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _holds(path, data):
    """Whether this file is this task, or the record of it: a record holds the text of its task as it is."""
    try:
        with open(path, "rb") as file:
            there = file.read()
    except OSError:
        return False
    return there == data or b'"task":' + data.strip() in there


def _read(path):
    """The object in this file; None when it is not there. A record appears whole."""
    try:
        with open(path, "rb") as file:
            value = json.loads(file.read().decode("utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _names(path):
    try:
        return sorted(name for name in os.listdir(path) if not name.startswith("."))
    except FileNotFoundError:
        return []


def _mtime(path):
    try:
        return os.stat(path).st_mtime
    except FileNotFoundError:
        return 0.0


def _shown(record):
    return {"id": record.get("task_id"), **{key: record[key] for key in ("status", "output", "error", "code") if key in record}}


def _strict(text, code):
    def refuse(word):
        raise ValueError("%s is no JSON" % word)

    try:
        return json.loads(text.decode("utf-8"), parse_constant=refuse)
    except ValueError as error:
        raise MailchuteError(code, "not JSON: %s" % error)


def _run(words):
    verb, rest = (words[0], words[1:]) if words else ("", [])
    timeout = None
    if "--timeout" in rest:
        at = rest.index("--timeout")
        try:
            timeout = float(rest[at + 1])
        except (IndexError, ValueError):
            raise MailchuteError("ErrUsage", "--timeout needs a number of seconds")
        rest = rest[:at] + rest[at + 2 :]
    mailchute = Mailchute()
    if verb == "submit" and len(rest) <= 1:
        task = _strict(sys.stdin.buffer.read(), "ErrInvalidTask")
        id, outcome = mailchute.send(task, *rest)
        return {"id": id, "outcome": outcome}, 0
    if verb == "wait" and len(rest) == 1:
        record = mailchute.wait(rest[0], timeout)
        return _shown(record), 0 if record.get("status") == "completed" else 1
    if verb == "result" and len(rest) == 1:
        record = mailchute.result(rest[0])
        return ({"id": rest[0], "status": "open"} if record is None else _shown(record)), 0
    if verb == "command" and 1 <= len(rest) <= 2:
        args = _strict(rest[1].encode("utf-8"), "ErrInvalidCommand") if len(rest) == 2 else {}
        return {"result": mailchute.command(rest[0], args, timeout)}, 0
    if verb == "list" and not rest:
        return mailchute.list(), 0
    raise MailchuteError("ErrUsage", "usage: submit [ID] < TASK | wait ID | result ID | command NAME [ARGS] | list  [--timeout S]")


def main(words):
    try:
        said, code = _run(words)
    except MailchuteError as error:
        said, code = {"error": str(error), "code": error.code}, EXITS.get(error.code, 1)
        sys.stderr.write("mailchute.py: %s: %s\n" % (error.code, error))
    sys.stdout.buffer.write(json.dumps(said, ensure_ascii=False).encode("utf-8") + b"\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
