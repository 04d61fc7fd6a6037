package collect

import (
	"net"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

// A relay accepts connections although nothing listens behind it. RootlessKit closes them later,
// some of them much later; pasta resets them at once.
func TestCheckRelays(t *testing.T) {
	after := map[string]func(net.Conn){
		"reset": func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() },
		"late":  func(c net.Conn) { time.Sleep(2 * closedWithin); _ = c.Close() },
		"never": func(c net.Conn) { time.Sleep(time.Minute); _ = c.Close() },
	}
	for name, end := range after {
		for holder, expected := range map[string]map[string]bool{
			ports.Rootlesskit: {"reset": true, "late": true, "never": true},
			"server":          {"reset": true, "never": false},
		} {
			want, ok := expected[name]
			if !ok {
				continue
			}
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			go testnet.Accept(l, end)
			r := &ports.Report{Ports: []ports.Row{{Proto: "tcp", Holder: ports.Holder{Kind: holder},
				Paths: map[ports.Client]ports.Path{
					ports.Loopback: {Kind: ports.Nothing, Dial: l.Addr().String()}}}}}
			Check(t.Context(), r)
			if len(r.Checks) != 1 || r.Checks[0].Agrees != want || r.Served() == want {
				t.Errorf("%s, %s: %+v, served %t", holder, name, r.Checks, r.Served())
			}
		}
	}
}

// A lost packet does not contradict a report; two do.
func TestCheckTwice(t *testing.T) {
	for want, list := range map[string][]string{"connected": {"timeout", "connected"},
		"timeout": {"timeout", "timeout", "connected"}} {
		k := ports.Check{Expected: ports.ByNAT}
		check(&k, "", func(time.Duration) (got ports.Check) {
			got.Got, list = list[0], list[1:]
			return got
		})
		if k.Got != want || k.Agrees != (want == "connected") {
			t.Errorf("%+v, want %s", k, want)
		}
	}
}
