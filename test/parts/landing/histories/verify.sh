# Checks what it stands in: two clash files do not go together. Writes down what it saw, and what it said. The first two landings may wait for
# others, and a person may move the target.
if [ "$(ls | grep -c '^clash-')" -gt 1 ]; then verdict=red; else verdict=green; fi
case $PWD in
  */.landing/*)
    echo x >> "$HISTORY/checks"
    number=$(($(wc -l < "$HISTORY/checks")))
    if [ "$number" -le 2 ] && [ -e "$HISTORY/gather" ]; then
      read -r most inbox < "$HISTORY/gather"
      for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        [ "$(ls "$inbox" | grep -c '[.]land[.]json$')" -lt "$most" ] || break
        sleep 0.1
      done
    fi
    # What is killed with the check does not kill the person.
    if [ -e "$HISTORY/moves/$number" ]; then
      read -r file < "$HISTORY/moves/$number"
      env -i PATH="$PATH" GIT="$GIT" HISTORY="$HISTORY" REPO="$REPO" TARGET="$TARGET" setsid -w sh "$HISTORY/person.sh" "check-$number" $file
    fi
    [ ! -e "$HISTORY/signals/$number" ] || kill -KILL $$
    echo "$("$GIT" rev-parse HEAD "HEAD^{tree}" | tr '\n' ' ')$verdict" >> "$HISTORY/verified" ;;
esac
[ "$verdict" = green ]
