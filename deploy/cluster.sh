#!/usr/bin/env bash
# deploy/cluster.sh PUNCTUAL [N]   runs N nodes (3) on a private PostgreSQL, all on the loopback, until Ctrl-C
#
# For trying: everything is in a directory that is thrown away at the end. PUNCTUAL is the program. The first node listens
# on port 7400, or on PORT if that is set, and the others on the ports after it.
set -euo pipefail
punctual=$(realpath "$1") nodes=${2:-3} port=${PORT:-7400}
bin=$(dirname "$(ls /usr/lib/postgresql/*/bin/postgres | tail -n 1)")
place=$(mktemp -d "${TMPDIR:-/tmp}/punctual-cluster-XXXXXX")
pids=() postgres=

# PostgreSQL refuses to run as root, who runs it as the user that its package has made.
as_postgres() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }

# Nodes end before what they are on. A Ctrl-C reaches only this script: each child is a session of its own.
end() {
    trap - EXIT INT TERM
    for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    [ -z "$postgres" ] || { as_postgres "$bin/pg_ctl" stop -s -m fast -D "$place/postgres" || true; }
    rm -rf "$place"
}
trap end EXIT
trap 'exit 0' INT TERM

is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
free_port() {
    local found=$((20000 + RANDOM % 10000))
    while is_taken "$found"; do found=$((found + 1)); done
    echo "$found"
}

[ "$(id -u)" != 0 ] || chown postgres "$place"
as_postgres "$bin/initdb" -A trust -U punctual -D "$place/postgres" >"$place/initdb.log"
postgres=$(free_port)
as_postgres "$bin/pg_ctl" start -s -w -D "$place/postgres" -l "$place/postgres.log" \
    -o "-p $postgres -c listen_addresses=127.0.0.1 -c unix_socket_directories=$place"
store=postgres://punctual@127.0.0.1:$postgres/postgres

urls=()
for ((number = 1; number <= nodes; number++)); do
    address=127.0.0.1:$((port + number - 1))
    setsid "$punctual" serve --store "$store" --data "$place/node-$number" --node-name "node-$number" \
        --listen "$address" --node-advertise "http://$address" \
        >"$place/node-$number.log" 2>&1 &
    pids+=($!)
    urls+=("http://$address")
    until "$punctual" --url "http://$address" health >/dev/null 2>&1; do
        kill -0 "${pids[-1]}" 2>/dev/null || { cat "$place/node-$number.log" >&2; exit 1; }
        sleep 0.1
    done
done

echo "$nodes nodes work on $store:"
for ((number = 1; number <= nodes; number++)); do
    echo "  node-$number  ${urls[number - 1]}  process ${pids[number - 1]}  log $place/node-$number.log"
done
cat <<END

In another terminal, schedule a task at one node and receive it at another:
  curl -s ${urls[0]}/v1/tasks --json '{"topic":"hello","delay":"3s","text":"world"}'
  curl -s ${urls[-1]}/v1/reserve --json '{"queues":["hello"],"wait":"10s"}'
See who has what, and let one node crash:
  export PUNCTUAL_URL=$(IFS=,; echo "${urls[*]}")
  $punctual nodes
  kill -9 ${pids[0]}
Ctrl-C ends everything and throws it away.
END
wait
