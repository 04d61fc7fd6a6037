package pathtest

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

func TestSocketsOf(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	own := &running{proc: &path.Process{PID: os.Getpid()}, role: "server"}
	elsewhere := &running{proc: &path.Process{}, role: "client"}
	got := socketsOf([]*running{own, elsewhere, own})
	if want := l.Addr().String() + " → 0.0.0.0:0 listen"; strings.Count(got, want) != 1 ||
		strings.Contains(got, "client") {
		t.Errorf("%q is not once in %s", want, got)
	}
}
