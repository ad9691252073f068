# A git that says it has saved the work, and has not.
case "$*" in *" update-ref refs/mailchute/"*"/"[0-9]*" ") exit 0 ;; esac
