# A git that lands everything twice: it takes back what has just landed, and lands it again.
case "$*" in
  *" update-ref -m mailchute: landing of "*)
    # Once for each landing: mailchute, which finds another commit than its own, comes again.
    if mkdir "$COUNTED/twice.$(echo "$*" | sed 's/.*landing of \([^ ]*\) .*/\1/')" 2>/dev/null; then
      while [ "$1" != update-ref ]; do set -- "$@" "$1"; shift; done
      # Now the settings stand behind: update-ref -m TEXT REF NEW OLD -c SETTING …
      again() { "$REAL_GIT" -c user.name=again -c user.email=again@example.invalid commit-tree -m again -p "$1" "$2^{tree}"; }
      exec "$REAL_GIT" update-ref -m "$3" "$4" "$(again "$(again "$5" "$6")" "$5")" "$6"
    fi ;;
esac
