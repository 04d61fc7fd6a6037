#!/bin/bash
# One would guess that psutil.Process(pid).net_connections() has the sockets of that process, also
# of one in a container: it reads which sockets the process has open.
#
# It looks them up among those of its own network namespace. Of a listening server in another one it
# returns an empty list and no error, as of a process without sockets. gopsutil, which took psutil
# for its model, lists them.
#
# psutil 7.2.2 (PyPI), github.com/shirou/gopsutil 4.26.10 (Go), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get psutil==7.2.2
go_get github.com/shirou/gopsutil/v4@v4.26.10
cat >main.go <<'END'
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/shirou/gopsutil/v4/net"
)

func main() {
	pid, _ := strconv.Atoi(os.Args[1])
	all, err := net.ConnectionsPid("tcp4", int32(pid))
	for _, c := range all {
		fmt.Print(c.Status, " ", c.Laddr.Port, " ")
	}
	fmt.Println(err)
}
END
go build -o list .
cat >serve.py <<'END'
import socket, time
server = socket.create_server(("127.0.0.1", 7777))
open("ready", "w").close()
time.sleep(200)
END
list() {
	for _ in $(seq 100); do [ -e ready ] || sleep 0.1; done
	expect "psutil, server in $1" "$2" "$(py/bin/python -c '
import psutil, sys
sockets = psutil.Process(int(sys.argv[1])).net_connections()
print([(c.status, c.laddr.port) for c in sockets])' "$!")"
	expect "gopsutil, server in $1" "LISTEN 7777 <nil>" "$(./list "$!")"
	kill "$!" && rm ready
}
unshare -r python3 serve.py &
list "this network namespace" "[('LISTEN', 7777)]"
unshare -rn sh -c 'ip link set lo up; exec python3 serve.py' &
list "one of its own" "[]"
