package program

import (
	"net/netip"
	"testing"
)

func TestFill(t *testing.T) {
	v4 := Fill{Addr: netip.MustParseAddrPort("192.0.2.7:8080"), Second: 5301, Seconds: 3}
	v6 := Fill{Addr: netip.MustParseAddrPort("[::1]:8080")}
	for _, c := range []struct {
		name, in string
		fill     Fill
		want     string
	}{
		{"all", "{host} {port} {addr} {port2} {seconds} {dir}", v4,
			"192.0.2.7 8080 192.0.2.7:8080 5301 3 /dev/shm"},
		{"v6-addr-has-brackets", "http://{addr}/", v6, "http://[::1]:8080/"},
		{"v6-host-has-none", "-h {host} -p {port}", v6, "-h ::1 -p 8080"},
		{"twice", "{port}{port}", v4, "80808080"},
		{"others-words", "${HOME} {} {Host} { port }", v4, "${HOME} {} {Host} { port }"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.fill.Into(c.in); got != c.want {
				t.Errorf("Into = %q, want %q", got, c.want)
			}
		})
	}
}

func TestNeedsSecond(t *testing.T) {
	if NeedsSecond("iperf3 -p {port}") || !NeedsSecond("netperf -- -P ,{port2}") {
		t.Error("the second port is asked for by {port2}, and by nothing else")
	}
}
