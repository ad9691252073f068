# A git that says it has kept the commits of a branch that lands, and has not.
case "$*" in *" update-ref refs/mailchute/"*"/landing "*) exit 0 ;; esac
