#!/bin/bash
# One would guess that a context with a deadline of 0.2 s ends Get of Go's client for Redis and
# Valkey after 0.2 s if the server does not answer: this is what its first argument is for.
#
# It ends after 5 s, the client's ReadTimeout. ContextTimeoutEnabled, which is false by default,
# makes it 0.2 s. So each caller whose time is up holds a connection of the pool for five seconds,
# and what measures the call sees 5 s.
#
# github.com/redis/go-redis/v9 9.23.0 (Go), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get github.com/redis/go-redis/v9@v9.23.0
cat >serve.py <<'PY'
"""serve.py PORT answers each command but GET."""
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
def serve(c):
    try:
        while data := c.recv(65536):
            for command in data.upper().split(b"*")[1:]:
                if b"\r\nHELLO\r\n" in command:
                    c.sendall(b"-ERR unknown command\r\n")
                elif b"\r\nGET\r\n" not in command:
                    c.sendall(b"+OK\r\n")
    except OSError:
        pass
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
PY
cat >main.go <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	client := redis.NewClient(&redis.Options{
		Addr:                  os.Args[1],
		ContextTimeoutEnabled: len(os.Args) > 2,
	})
	if err := client.Set(context.Background(), "k", "v", 0).Err(); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	err := client.Get(ctx, "k").Err()
	fmt.Printf("%.1f %v\n", time.Since(start).Seconds(), errors.Is(err, context.DeadlineExceeded))
}
GO
go build -o get .
port=$(free_port)
python3 serve.py "$port" &
wait_port "$port"
for option in '' enabled; do
	./get "127.0.0.1:$port" $option >seen
	took=$(cut -d' ' -f1 seen)
	if [ -z "$option" ]; then
		holds "by default: $took s" "$took >= 4.5"
	else
		holds "ContextTimeoutEnabled: $took s" "$took < 2"
	fi
done
