package sentence

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

func TestReasonsOfPorts(t *testing.T) {
	dropped := ports.Loss{Code: ports.Dropped, Table: "filter", Chain: "FORWARD", Number: 2,
		Rule: "-j DROP"}
	policy := ports.Loss{Code: ports.Dropped, Reply: true, Where: "container web",
		Table: "inet own",
		Chain: "in"}
	rejected := dropped
	rejected.Code = ports.Rejected
	for want, r := range map[string]ports.Reason{
		"DNAT to 172.17.0.2:80, then dropped by filter FORWARD rule 2: -j DROP": {Code: ports.Lost,
			At: "172.17.0.2:80", Lost: dropped},
		"docker-proxy sends it to 172.17.0.2:80, then answered, but the answer is dropped by the " +
			"policy of inet own in in container web": {Code: ports.Lost, By: "docker-proxy",
			At: "172.17.0.2:80", Lost: policy},
		"rejected by filter FORWARD rule 2: -j DROP": {Code: ports.Lost, Lost: rejected},
		"lost in this machine: no route to 127.0.0.1": {Code: ports.Lost,
			Lost: ports.Loss{Code: ports.NoRoute, At: "127.0.0.1"}},
		"DNAT to 172.17.0.2:80, then no answer": {Code: ports.NoAnswer, At: "172.17.0.2:80"},
		"no answer":                             {Code: ports.NoAnswer},
		"the proxy accepts, and what it sends to 172.17.0.2:80 is lost in container web: " +
			"it leaves by " +
			"the next device": {Code: ports.LostBehind, At: "172.17.0.2:80",
			Lost: ports.Loss{Code: ports.Left, Where: "container web"}},
		"nothing listens on 198.18.0.1:22; besides, the packet is dropped by filter " +
			"FORWARD rule 2: " +
			"-j DROP": {Code: ports.LostBesides, At: "198.18.0.1:22", Lost: dropped},
		"it is dropped by filter FORWARD rule 2: -j DROP": {Code: ports.ItIsLost, Lost: dropped},
		"container web does not accept connections: it has 129 connections to accept, " +
			"as many as the " +
			"socket can hold": {Code: ports.QueueFull, Of: "container web", N: 129},
		"1 connection to accept, the oldest since 12 s": {Code: ports.QueueOld, N: 1,
			Since: 12 * time.Second},
		"proxy forwards to web, where nothing listens on 172.17.0.2:80": {Code: ports.NobodyBehind,
			Of: "web", By: "proxy", At: "172.17.0.2:80"},
		"nat DOCKER rule 3 redirects to web, where nothing listens on 172.17.0.2:80: -j DNAT": {
			Code: ports.NobodyByRule, Of: "web", By: "nat DOCKER rule 3", At: "172.17.0.2:80",
			Text: "-j DNAT"},
		"no rule redirects it any more, and no socket listens": {Code: ports.NotRedirected},
		"no socket listens on [::1]:80": {Code: ports.NoSocket,
			At: "[::1]:80"},
		"whether pasta dials 10.0.0.2, the only address on " +
			"which web listens": {Code: ports.DialsOnly,
			Of: "web", By: "pasta", At: "10.0.0.2"},
		"answered by other instead of sshd": {Code: ports.OtherServer, Of: "other", By: "sshd"},
		"what docker, nmcli would change is not known: a copy has no daemon": {
			Code: ports.DaemonsAsked, Of: "docker, nmcli"},
		"containers may reach 1.2.3.4:80": {Code: ports.MayReach, Of: "containers",
			At: "1.2.3.4:80"},
	} {
		if got := (portWords{}).Reason(r); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestCausesOfLosses(t *testing.T) {
	for want, l := range map[string]ports.Loss{
		"rp_filter at the next device: 172.17.0.2 is not routed back through it": {
			Code: ports.StrictSource, At: "172.17.0.2"},
		"the answer leaves by wg0": {Code: ports.AnswerElsewhere, Device: "wg0"},
		"the answer leaves by wg0 instead of eth0": {Code: ports.AnswerElsewhere, Device: "wg0",
			Other: "eth0"},
		"the server's answer goes straight to the client, untranslated": {Code: ports.Untranslated},
		"the server's answer goes straight to the client, untranslated: net.x is 0": {
			Code: ports.Untranslated, Key: "net.x"},
		"container web has the address 10.0.0.2, but its veth1 is no port of br0": {
			Code: ports.NotInBridge, Of: "web", At: "10.0.0.2", Device: "veth1", Other: "br0"},
		"10.0.0.2 is in the network of eth0, and this machine does not answer there for web": {
			Code: ports.NotProxied, Of: "web", At: "10.0.0.2", Device: "eth0"},
		"it leaves by eth1, and strict rp_filter at br-b ignores it": {Code: ports.StrictNeighbour,
			Device: "eth1", Other: "br-b"},
	} {
		if got := (portWords{}).Cause(l); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestTraps(t *testing.T) {
	for want, r := range map[string]ports.Reason{
		"Container web (exited) cannot bind its port: it is already in use": {
			Code: ports.PortConflict, Of: "web", By: "exited"},
		"Container web (exited) cannot bind its port: it is already in use; container " +
			"api has 80/tcp": {
			Code: ports.PortConflict, Of: "web", By: "exited", Text: "container api has 80/tcp"},
		"Container web should have a port published, but Docker publishes no ports of " +
			"an --internal " +
			"network": {Code: ports.InternalNetwork, Of: "web"},
		"Container web (restarting) does not stay up: 80/tcp, 81/tcp is only served " +
			"intermittently": {
			Code: ports.Restarting, Of: "web", By: "restarting", At: "80/tcp, 81/tcp"},
		"Network own is to be without NAT (--opt x=y), but rules replace the source " +
			"addresses of its " +
			"packets": {Code: ports.Masqueraded, Of: "own", By: "--opt x=y"},
		"Service web publishes 80/tcp through the swarm's ingress, but this node does " +
			"not accept it": {
			Code: ports.IngressNothing, Of: "web", At: "80/tcp"},
	} {
		if got := (portWords{}).Reason(r); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	var b []byte
	for _, name := range []string{"traps.go", "traps_about.go"} {
		part, err := os.ReadFile("../../reach/ports/" + name)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, part...)
	}
	codes := regexp.MustCompile(`(?m)^\t\w+(?: +Code)? += "(.*)"$`).FindAllStringSubmatch(string(b),
		-1)
	if len(codes) != len(ofTraps) {
		t.Errorf("%d codes, %d sentences", len(codes), len(ofTraps))
	}
	for _, m := range codes {
		if text := (portWords{}).Reason(ports.Reason{Code: ports.Code(m[1])}); regexp.MustCompile(
			`^$|[{}]`).MatchString(text) {
			t.Errorf("%s: %q", m[1], text)
		}
	}
}

// Each code has a sentence, whose blanks are known.
func TestPortCodes(t *testing.T) {
	b, err := os.ReadFile("../../reach/ports/reason.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`(Code|LossCode) = "(.*)"`).FindAllStringSubmatch(string(b), -1)
	if len(codes) != len(ofPorts)+len(ofLosses)+2 { // of rules
		t.Errorf("%d codes, %d sentences", len(codes), len(ofPorts)+len(ofLosses))
	}
	left := regexp.MustCompile(`^$|[{}]`)
	for _, m := range codes {
		r := ports.Reason{Code: ports.Code(m[2]), Text: "a text",
			Lost: ports.Loss{Code: ports.NoReason}}
		if m[1] == "LossCode" {
			r = ports.Reason{Code: ports.Lost, Lost: ports.Loss{Code: ports.LossCode(m[2])}}
		}
		if text := (portWords{}).Reason(r); left.MatchString(text) {
			t.Errorf("%s: %q", m[2], text)
		}
	}
}
