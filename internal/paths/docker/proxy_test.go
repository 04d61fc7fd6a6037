package docker

import "testing"

func TestHasPairs(t *testing.T) {
	args := []string{"/usr/sbin/docker-proxy", "-proto", "tcp", "-host-ip", "::1", "-host-port",
		"1", "-container-ip", "2", "-use-listen-fd"}
	for _, c := range []struct {
		want []string
		ok   bool
	}{
		{[]string{"-proto", "tcp", "-host-port", "1"}, true},
		{[]string{"-proto", "udp"}, false},
		{[]string{"-use-listen-fd", "x"}, false},
		{[]string{"-container-port", "2"}, false},
	} {
		if hasPairs(args, c.want) != c.ok {
			t.Errorf("%v: %v", c.want, !c.ok)
		}
	}
}
