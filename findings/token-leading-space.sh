#!/bin/bash
# One would guess that a token which a server's library for event streams writes is what a client's
# reads: " the" arrives as " the".
#
# gin-contrib/sse, which gin's c.SSEvent uses, writes no space after "data:". Clients take the
# token's own for the one that the standard lets them skip, so the words of an answer run together.
# A carriage return in a token becomes the two characters \r. go-sse writes a space, and loses none.
#
# gin-contrib/sse 1.1.2, tmaxmax/go-sse 0.11.0 (Go), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get github.com/gin-contrib/sse@v1.1.2 github.com/tmaxmax/go-sse@v0.11.0
cat >main.go <<'END'
package main

import (
	"bytes"
	"fmt"
	"os"

	gin "github.com/gin-contrib/sse"
	"github.com/tmaxmax/go-sse"
)

func main() {
	var text bytes.Buffer
	for _, token := range []string{"What's", " the", " a\rb"} {
		if os.Args[1] == "go-sse" {
			m := &sse.Message{}
			m.AppendData(token)
			_, _ = m.WriteTo(&text)
		} else if err := gin.Encode(&text, gin.Event{Data: token}); err != nil {
			panic(err)
		}
	}
	for e, err := range sse.Read(&text, nil) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%q ", e.Data)
	}
}
END
go build -o pass .
expect "gin-contrib/sse" '"What'"'"'s" "the" "a\\rb" ' "$(./pass gin)"
expect "go-sse" '"What'"'"'s" " the" " a\nb" ' "$(./pass go-sse)"
