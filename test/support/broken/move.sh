# A git that moves the target from wherever it is: what a person has added since is overwritten.
case "$*" in
  *" update-ref -m mailchute: landing of "*)
    while [ "$1" != update-ref ]; do set -- "$@" "$1"; shift; done
    # Now the settings stand behind: update-ref -m TEXT REF NEW OLD -c SETTING …
    exec "$REAL_GIT" update-ref -m "$3" "$4" "$5" ;;
esac
