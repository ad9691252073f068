# A person commits on the target: with plain git in the own tree when it is checked out there, else as a push would.
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=person GIT_AUTHOR_EMAIL=p@example.invalid GIT_COMMITTER_NAME=person GIT_COMMITTER_EMAIL=p@example.invalid
cd "$REPO" || exit
name=person-$1.txt
if [ "$("$GIT" symbolic-ref -q --short HEAD)" = "$TARGET" ]; then
  echo "tok-person.$1" > "$name"
  for try in 1 2 3 4 5; do
    "$GIT" add "$name" && "$GIT" commit -q -m "person $1" -- "$name" && break
    sleep 0.05
  done >/dev/null 2>&1
  exit 0
fi
index=$HISTORY/index.person.$1
for try in 1 2 3 4 5 6 7 8; do
  old=$("$GIT" rev-parse -q --verify "refs/heads/$TARGET") || exit 0
  rm -f "$index"
  GIT_INDEX_FILE=$index "$GIT" read-tree "$old"
  blob=$(echo "tok-person.$1" | "$GIT" hash-object -w --stdin)
  GIT_INDEX_FILE=$index "$GIT" update-index --add --cacheinfo "100644,$blob,$name"
  if [ -n "$2" ]; then
    blob=$({ echo "tok-person.$1.top"; "$GIT" cat-file blob "$old:$2"; } | "$GIT" hash-object -w --stdin)
    GIT_INDEX_FILE=$index "$GIT" update-index --add --cacheinfo "100644,$blob,$2"
  fi
  tree=$(GIT_INDEX_FILE=$index "$GIT" write-tree)
  new=$("$GIT" commit-tree -m "person $1" -p "$old" "$tree")
  "$GIT" update-ref "refs/heads/$TARGET" "$new" "$old" 2>/dev/null && break
done
rm -f "$index"
