# Checks what it stands in: two clash files do not go together. Writes down what it saw, and what it said. A person may move the target meanwhile.
if [ "$(ls | grep -c '^clash-')" -gt 1 ]; then verdict=red; else verdict=green; fi
case $PWD in
  */.landing/*)
    echo x >> "$HISTORY/checks"
    number=$(($(wc -l < "$HISTORY/checks")))
    # What is killed with the check does not kill the person.
    if [ -e "$HISTORY/moves/$number" ]; then
      read -r file < "$HISTORY/moves/$number"
      env -i PATH="$PATH" GIT="$GIT" HISTORY="$HISTORY" REPO="$REPO" TARGET="$TARGET" setsid -w sh "$HISTORY/person.sh" "check-$number" $file
    fi
    [ ! -e "$HISTORY/signals/$number" ] || kill -KILL $$
    echo "$("$GIT" rev-parse HEAD "HEAD^{tree}" | tr '\n' ' ')$verdict" >> "$HISTORY/verified" ;;
esac
[ "$verdict" = green ]
