// The shell that holds a test's database server on a leash: however the test process ends, the
// server and its folder go too.

// $1 is the folder, the rest the command. Without /proc the server's other processes are left to
// end by themselves when its first one has.
export const leashScript = String.raw`
folder=$1; shift
exec 4<&0
"$@" </dev/null 3>&- 4<&- &
server=$!
echo "$server" >&3
exec 3>&-
(
  read -r line <&4
  trap "" TERM
  others=$(grep -ls "^PPid:[[:space:]]*$server\$" /proc/[0-9]*/status | cut -d/ -f3)
  kill -KILL "$server" $others
  until rm -rf "$folder"; do sleep 1; done
) >/dev/null 2>&1 &
holder=$!
exec 4<&-
wait "$server"
kill -TERM "$holder" 2>/dev/null
`;
