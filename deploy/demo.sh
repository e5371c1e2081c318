#!/usr/bin/env bash
# deploy/demo.sh PUNCTUAL LOAD [DIRECTORY]   runs a server with a lively shop on it, and opens its console, until Ctrl-C
#
# For looking around. PUNCTUAL is the server's program, LOAD the shop's (client/examples/demo). Tasks are kept in DIRECTORY; without one, in a
# directory that is thrown away at the end. It listens on port 7400, or on any that is free if that is taken; or on PORT if that is set.
set -euo pipefail
punctual=$(realpath "$1") load=$(realpath "$2") named=${3:-}
place=$(mktemp -d "${TMPDIR:-/tmp}/punctual-demo-XXXXXX")
data=${named:-$place/data} pids=()

# The shop ends before the server. A Ctrl-C reaches only this script: each child is a session of its own.
end() {
    trap - EXIT HUP INT TERM
    for ((index = ${#pids[@]} - 1; index >= 0; index--)); do
        kill -TERM "${pids[index]}" 2>/dev/null || true
        wait "${pids[index]}" 2>/dev/null || true
    done
    rm -rf "$place"
}
trap end EXIT
trap 'exit 0' HUP INT TERM

is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
port=${PORT:-7400}
[ -n "${PORT:-}" ] || ! is_taken "$port" || port=0

# give_up WHAT: says why, as the child itself has said it.
give_up() {
    echo "$1 has ended:" >&2
    tail -n 20 "$place/$1.log" >&2
    exit 1
}

: >"$place/server.log"
setsid "$punctual" serve --listen "127.0.0.1:$port" --data "$data" --console-title "The demo shop" --console-environment demo \
    >"$place/server.log" 2>&1 &
pids+=($!)
until url=$(grep -m 1 -o 'http://127\.0\.0\.1:[0-9]*' "$place/server.log") && "$punctual" --url "$url" health >/dev/null 2>&1; do
    kill -0 "${pids[0]}" 2>/dev/null || give_up server
    sleep 0.1
done
PUNCTUAL_URL=$url setsid "$load" >"$place/load.log" 2>&1 &
pids+=($!)
until [ -s "$place/load.log" ]; do
    kill -0 "${pids[1]}" 2>/dev/null || give_up load
    sleep 0.1
done

cat <<END
A shop with about 15 tasks a second is at work: $url/console/

What there is to see:
  Overview    how late it is, what comes in and gets done, and what needs you
  Future      4,000 coupons end at the full hour, and 1,200 in a few minutes: two herds, and 60 a second go out
  Dead        texts that one gateway of eight never sends, unknown numbers, full mailboxes: grouped by their notes
  Queues      invoice is paused with work in it; nobody works on parcel-lost
  Tasks       key user-7 has orders, coupons and reminders; support holds tickets for some seconds
In the terminal:
  export PUNCTUAL_URL=$url
  $punctual top
  $punctual forecast
Tasks are in $data. Ctrl-C ends everything$([ -n "$named" ] && echo ", and they stay" || echo " and throws it away").
END

# A browser of the desktop, if there is one. Whether it opens is not our concern.
if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && command -v xdg-open >/dev/null; then
    setsid xdg-open "$url/console/" >/dev/null 2>&1 &
fi

# Neither ends by itself.
wait -n "${pids[@]}" || true
kill -0 "${pids[0]}" 2>/dev/null && give_up load || give_up server
