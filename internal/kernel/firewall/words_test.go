package firewall

import (
	"strings"
	"testing"
)

func TestRuleString(t *testing.T) {
	for _, words := range []string{
		"-i br-1 -d 172.18.0.2/32 -p tcp --dport 5201 -j ACCEPT",
		"! -i br-1 -o br-1 -j DROP",
		"! -o br-1 -s 172.18.0.0/16 -j MASQUERADE",
		"-j DOCKER-USER",
		"",
	} {
		if got := ParseRule(strings.Fields(words)).String(); got != words {
			t.Errorf("%q is said %q", words, got)
		}
	}
	dnat := ParseRule(
		strings.Fields(
			"-d 127.0.0.1/32 -p tcp -m tcp --dport 80:90 -j DNAT --to-destination 172.18.0.2:5201"))
	got := dnat.String()
	if got != "-d 127.0.0.1/32 -p tcp --dport 80:90 -j DNAT to 172.18.0.2:5201" {
		t.Error(got)
	}
}
