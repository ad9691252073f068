#!/usr/bin/env bash
# mailchute for bash: one file; bash 5, coreutils and jq.
#
#   . mailchute.sh                                   # functions, for scripts
#   id=$(mailchute_submit <<< '{"exec": ["make", "test"]}')
#   mailchute_wait "$id" 600 > record.json           # 0: completed, 1: failed, 124: not in time
#
#   mailchute.sh submit [ID] < task.json             # or as a program: one JSON object on stdout
#   mailchute.sh wait ID [--timeout S] | result ID | command NAME [ARGS] [--timeout S] | list
#
# A task is safe when submit returns, also from a power cut and when no pool runs. It is never written over another one. The state
# tree is MAILCHUTE_STATE, or ./state. The protocol is docs/protocol.md of the package.

# What failed: a code of docs/errors.md, and a sentence. The exit codes are those of the command line.
_mailchute_fail() { # CODE MESSAGE
  [[ -z ${_MAILCHUTE_JSON-} ]] || jq -cn --arg code "$1" --arg error "$2" '{error: $error, code: $code}' >&"$_MAILCHUTE_JSON"
  printf 'mailchute.sh: %s: %s\n' "$1" "$2" >&2
  case $1 in
    ErrUsage | ErrInvalidTask | ErrInvalidCommand) return 2 ;;
    ErrTaskNotFound) return 3 ;;
    ErrTaskExists) return 4 ;;
    ErrMailboxDir) return 73 ;;
    ErrWaitTimedOut) return 124 ;;
    *) return 74 ;;
  esac
}

_mailchute_state() { # prints the state tree
  local state=${MAILCHUTE_STATE:-state}
  if [[ ! -d $state/mailbox/inbox ]]; then
    _mailchute_fail ErrMailboxDir "$state is no state tree; \`mailchute init\` makes one"
    return
  fi
  (cd -- "$state" && pwd -P)
}

_mailchute_random() { od -An -N6 -tx1 /dev/urandom | tr -d ' \n'; }

mailchute_check_id() { # ID
  local LC_ALL=C
  local id=$1 device='^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)'
  if [[ ! $id =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ || ${#id} -gt 96 || $id == *..* || ${id,,} =~ $device ]]; then
    _mailchute_fail ErrInvalidTask "bad id: letters, digits, '.', '_', '-', at most 96, no '..'"
  fi
}

# The file in processing/ that has this id.
_mailchute_live() { # MAILBOX ID
  local file name id=${2,,}
  for file in "$1"/processing/*; do
    name=${file##*/}
    name=${name,,}
    if [[ ${name%%@*} == "$id" || $name == "$id.json" ]]; then
      printf '%s' "$file"
      return
    fi
  done
  return 1
}

_mailchute_is_open() { # MAILBOX ID
  [[ -e $1/inbox/$2.json ]] || _mailchute_live "$1" "$2" > /dev/null
}

# Whether this file is this task, or the record of it: a record holds the text of its task as it is.
_mailchute_holds() { # FILE TEXT
  local there
  there=$(cat -- "$1" 2> /dev/null) || return
  [[ $there == "$2" || $there == *'"task":'"$2"* ]]
}

# Staged, synced, and linked: a link never replaces a file, and whoever reads the inbox sees all of it or nothing.
_mailchute_publish() { # MAILBOX ID TEXT; prints "submitted" or "unchanged"
  local mailbox=$1 id=$2 text=$3 staged outcome='' target
  staged=$mailbox/.tmp/$id-$(_mailchute_random).json.tmp
  target=$mailbox/inbox/$id.json
  if ! (umask 077 && set -o noclobber && printf '%s\n' "$text" > "$staged") 2> /dev/null || ! sync -- "$staged"; then
    rm -f -- "$staged"
    _mailchute_fail ErrIo "cannot write $staged"
    return
  fi
  if ln -T -- "$staged" "$target" 2> /dev/null; then
    outcome=submitted
  elif _mailchute_holds "$target" "$text"; then
    outcome=unchanged
  fi
  rm -f -- "$staged"
  if [[ -z $outcome && -e $target ]]; then
    _mailchute_fail ErrTaskExists "another task $id waits in the inbox"
  elif [[ -z $outcome ]]; then
    _mailchute_fail ErrIo "cannot make $target"
  elif ! sync -- "$mailbox/inbox"; then
    _mailchute_fail ErrIo "cannot sync $mailbox/inbox"
  else
    printf '%s\n' "$outcome"
  fi
}

# The file that has this id outside of the inbox. The record of a refused file settles nothing.
_mailchute_holder() { # MAILBOX ID
  local path
  _mailchute_live "$1" "$2" && return
  for path in "$1/inbox/$2.ndjson" "$1/outbox/$2_result.json" "$1/failed/$2_error.json"; do
    if [[ -e $path ]] && ! jq -e '.kind == "invalid" and .attempts == 0' "$path" > /dev/null 2>&1; then
      printf '%s' "$path"
      return
    fi
  done
  return 1
}

# Submits the task on stdin; prints the outcome.
_mailchute_send() { # STATE TEXT ID
  local mailbox=$1/mailbox text=$2 id=$3 holder
  mailchute_check_id "$id" || return
  if ! jq -es --arg id "$id" 'length == 1 and (.[0] | type == "object" and (.id // $id) == $id)' <<< "$text" > /dev/null 2>&1; then
    _mailchute_fail ErrInvalidTask "not a task: no JSON object, or its id is not $id"
  elif ! jq -e '[.exec, .agent, .prompt, .payload, .title, .description] | any(. != null)' <<< "$text" > /dev/null; then
    _mailchute_fail ErrInvalidTask "nothing to run: no exec, agent, prompt, payload, title or description"
  elif (LC_ALL=C && ((${#text} >= 1048576))); then
    _mailchute_fail ErrInvalidTask "the task is larger than 1 MiB"
  elif holder=$(_mailchute_holder "$mailbox" "$id"); then
    if ! _mailchute_holds "$holder" "$text"; then
      _mailchute_fail ErrTaskExists "another task $id is there already: $holder"
    elif sync -- "$mailbox/inbox"; then
      echo unchanged
    else
      _mailchute_fail ErrIo "cannot sync $mailbox/inbox"
    fi
  else
    _mailchute_publish "$mailbox" "$id" "$text"
  fi
}

_mailchute_id_for() { # TEXT [ID]
  local id
  if (($# > 1)); then
    printf '%s' "$2"
    return
  fi
  id=$(jq -r '.id // empty' <<< "$1" 2> /dev/null)
  printf '%s' "${id:-t-$(date +%s)-$(_mailchute_random)}"
}

mailchute_submit() { # [ID] < TASK; prints the id
  local state text id
  state=$(_mailchute_state) || return
  text=$(cat) || return
  id=$(_mailchute_id_for "$text" "$@")
  _mailchute_send "$state" "$text" "$id" > /dev/null && printf '%s\n' "$id"
}

# The path of the record of a task that has ended. 75: it waits or runs. 3: there is no such task.
_mailchute_record() { # MAILBOX ID
  local look found
  for look in 1 2 3 4; do
    if [[ -e $1/outbox/$2_result.json ]]; then
      printf '%s' "$1/outbox/$2_result.json"
      return
    fi
    # A failed task that was put back keeps its record until the retry is complete.
    _mailchute_is_open "$1" "$2" && return 75
    if [[ -e $1/failed/$2_error.json ]] && ! _mailchute_is_open "$1" "$2"; then
      printf '%s' "$1/failed/$2_error.json"
      return
    fi
    # A move between two looks can hide a task, but hardly several times in a row.
    sleep 0.02
  done
  # The latest record of a file that was refused while another task had its id.
  found=$(ls -t -- "$1/failed/$2~"*_error.json 2> /dev/null | head -n 1)
  if [[ -n $found ]]; then
    printf '%s' "$found"
  else
    _mailchute_fail ErrTaskNotFound "no tray has a task $2"
  fi
}

mailchute_result() { # ID; prints the record. 75: it waits or runs
  local state path
  mailchute_check_id "$1" || return
  state=$(_mailchute_state) || return
  path=$(_mailchute_record "$state/mailbox" "$1") || return
  cat -- "$path"
}

mailchute_wait() { # ID [SECONDS]; prints the record. 0: completed, 1: failed, 124: not in time
  local record code deadline=$((${EPOCHREALTIME/[.,]/} + $(_mailchute_micros "${2-}")))
  while :; do
    code=0
    record=$(mailchute_result "$1") || code=$?
    if ((code == 0)); then
      printf '%s\n' "$record"
      jq -e '.status == "completed"' <<< "$record" > /dev/null
      return
    fi
    ((code == 75)) || return $code
    if [[ -n ${2-} ]] && ((${EPOCHREALTIME/[.,]/} >= deadline)); then
      _mailchute_fail ErrWaitTimedOut "$1 has not ended in time"
      return
    fi
    sleep 0.1
  done
}

_mailchute_micros() { # SECONDS, also 0.5; nothing: 0
  local seconds=${1:-0} rest=000000
  if [[ ! $seconds =~ ^[0-9]+(\.[0-9]+)?$ ]]; then
    _mailchute_fail ErrUsage "--timeout needs a number of seconds"
    return
  fi
  [[ $seconds != *.* ]] || rest=${seconds#*.}000000
  printf '%d' "$((10#${seconds%%.*} * 1000000 + 10#${rest:0:6}))"
}

# Gives the supervisor a command; waits for its answer, and prints it. Without a limit it waits until a supervisor answers.
mailchute_command() { # NAME [ARGS [SECONDS]]
  local state id body path deadline args=${2-}
  state=$(_mailchute_state) || return
  if [[ ! -d $state/control/inbox ]]; then
    _mailchute_fail ErrMailboxDir "$state/control is missing; \`mailchute init\` makes it"
    return
  fi
  [[ -n $args ]] || args='{}'
  id=c-$(date +%s)-$(_mailchute_random)
  if ! body=$(jq -cn --arg id "$id" --arg command "$1" --argjson args "$args" \
    '{id: $id, command: $command, args: $args, created_at: (now | floor)}' 2> /dev/null); then
    _mailchute_fail ErrInvalidCommand "its arguments are no JSON"
    return
  fi
  _mailchute_publish "$state/control" "$id" "$body" > /dev/null || return
  deadline=$((${EPOCHREALTIME/[.,]/} + $(_mailchute_micros "${3-}")))
  while :; do
    path=$state/control/outbox/${id}_result.json
    if [[ -e $path ]]; then
      jq -c '.result // {}' "$path"
      return
    fi
    path=$state/control/failed/${id}_error.json
    if [[ -e $path ]]; then
      _mailchute_fail "$(jq -r '.code // "ErrInvalidCommand"' "$path")" "$(jq -r '.error // "it failed"' "$path")" || return
    fi
    if [[ -n ${3-} ]] && ((${EPOCHREALTIME/[.,]/} >= deadline)); then
      _mailchute_fail ErrWaitTimedOut "no answer in time; the command $id waits for a supervisor"
      return
    fi
    sleep 0.05
  done
}

mailchute_cancel() { mailchute_command cancel "$(jq -cn --arg id "$1" '{node: $id, final: true}')" "${2-}"; } # ID [SECONDS]

mailchute_list() {
  local state mailbox
  state=$(_mailchute_state) || return
  mailbox=$state/mailbox
  _mailchute_names() { # TRAY ENDING
    local file
    for file in "$mailbox/$1/"*"$2"; do
      [[ ! -e $file || $2 != .json && ${file##*/} == *~* ]] || printf '%s\n' "${file##*/}"
    done | sed "s/@.*//; s/$2\$//" | sort -u | jq -Rn '[inputs]'
  }
  jq -cn --argjson waiting "$(_mailchute_names inbox .json)" --argjson running "$(_mailchute_names processing .json)" \
    --argjson completed "$(_mailchute_names outbox _result.json)" --argjson failed "$(_mailchute_names failed _error.json)" \
    '{waiting: $waiting, running: $running, completed: $completed, failed: $failed}'
}

# As a program: one JSON object on stdout, whatever happens.
_mailchute_main() {
  local verb=${1-} words=() timeout='' record code=0
  local shown='{id: .task_id} + with_entries(select(.key | IN("status", "output", "error", "code")))'
  exec 3>&1
  _MAILCHUTE_JSON=3
  shift || true
  while (($# > 0)); do
    if [[ $1 == --timeout ]]; then
      timeout=${2-x}
      shift
    else
      words+=("$1")
    fi
    shift || true
  done
  _mailchute_micros "$timeout" > /dev/null || return
  case $verb/${#words[@]} in
    submit/0 | submit/1) _mailchute_say_submit "${words[@]}" ;;
    wait/1)
      record=$(mailchute_wait "${words[0]}" "$timeout") || code=$?
      ((code > 1)) || jq -c "$shown" <<< "$record"
      return "$code"
      ;;
    result/1)
      record=$(mailchute_result "${words[0]}") || code=$?
      if ((code == 0)); then
        jq -c "$shown" <<< "$record"
      elif ((code == 75)); then
        jq -cn --arg id "${words[0]}" '{id: $id, status: "open"}'
      else
        return "$code"
      fi
      ;;
    command/1 | command/2)
      record=$(mailchute_command "${words[0]}" "${words[1]-}" "$timeout") || return
      jq -c '{result: .}' <<< "$record"
      ;;
    list/0) mailchute_list ;;
    *) _mailchute_fail ErrUsage "usage: submit [ID] < TASK | wait ID | result ID | command NAME [ARGS] | list  [--timeout S]" ;;
  esac
}

_mailchute_say_submit() { # [ID] < TASK
  local state text id outcome
  state=$(_mailchute_state) || return
  text=$(cat) || return
  id=$(_mailchute_id_for "$text" "$@")
  outcome=$(_mailchute_send "$state" "$text" "$id") || return
  jq -cn --arg id "$id" --arg outcome "$outcome" '{id: $id, outcome: $outcome}'
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  _mailchute_main "$@"
fi
