package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// publishPast lets a path's RootlessKit publish a port that leads straight to a container, past
// docker-proxy and Docker's rules, and returns its address.
func publishPast(t *testing.T, p *path.Path, container netip.AddrPort) netip.AddrPort {
	t.Helper()
	const port = 9090
	socket := "/proc/" + strconv.Itoa(p.Proxies[0].PID) + "/root/tmp/state/api.sock"
	c := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}}
	body, err := json.Marshal(map[string]any{"proto": rootless.Port{UDP: p.Spec.UDP}.Protocol() +
		"4",
		"parentIP":   "0.0.0.0",
		"parentPort": port, "childIP": container.Addr(), "childPort": container.Port()})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Post("http://rootlesskit/v1/ports", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		t.Fatal(answer.Status)
	}
	if p.Spec.From == mode.FromHost && p.Spec.To != mode.ToAddress { // RootlessKit 3 has rules for others
		return netip.AddrPortFrom(loopback, port)
	}
	return netip.AddrPortFrom(outer.nth(machineA).Addr(), port)
}
