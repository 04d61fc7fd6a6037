package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Knock is one connection attempt or datagram. The connection tracking tables then show how rules
// rewrite it.
type Knock struct {
	Proto string         `json:"proto"` // tcp or udp
	To    netip.AddrPort `json:"to"`
}

const knockLimit = time.Second

// Knock makes the agent send k. It returns nil also if the attempt fails.
func (a *Agent) Knock(ctx context.Context, k Knock) error {
	_, err := a.ask(ctx, request{Knock: &k}, knockLimit)
	return err
}

// Do sends k from this process.
func (k Knock) Do() {
	d := net.Dialer{Timeout: knockLimit}
	c, err := d.Dial(k.Proto, k.To.String())
	if err != nil {
		return
	}
	_, _ = c.Write([]byte{0})
	_ = c.Close()
}

const lookupLimit = 6 * time.Second

// Lookup makes the agent resolve a name. It returns the name's IPv4 addresses, sorted, and the time
// that the lookup took.
func (a *Agent) Lookup(ctx context.Context, name string) ([]netip.Addr, time.Duration, error) {
	ans, err := a.ask(ctx, request{Lookup: name}, lookupLimit)
	return ans.Addrs, ans.Took, err
}

func lookup(name string) ([]netip.Addr, time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupLimit)
	defer cancel()
	began := time.Now()
	out, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", name)
	took := time.Since(began)
	for i := range out {
		out[i] = out[i].Unmap()
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out, took, err
}

// KubeProxy returns kube-proxy's mode on the agent's node, such as "iptables", or "" if the node
// shows no trace of kube-proxy.
func (a *Agent) KubeProxy(ctx context.Context) (string, error) {
	ans, err := a.ask(ctx, request{Proxy: true}, knockLimit)
	return ans.Text, err
}

// kubeProxyMode is the default URL at which kube-proxy reports its mode.
const kubeProxyMode = "http://127.0.0.1:10249/proxyMode"

func (s *server) kubeProxy() (string, error) {
	c := http.Client{Timeout: knockLimit, Transport: &http.Transport{
		Proxy: nil, DisableKeepAlives: true}}
	if r, err := c.Get(kubeProxyMode); err == nil {
		const most = 40 // bytes
		text, err := io.ReadAll(io.LimitReader(r.Body, most))
		_ = r.Body.Close()
		if word := printable.Words(strings.TrimSpace(string(text))); err == nil &&
			r.StatusCode == http.StatusOK && word != "" {
			return word, nil
		}
	}
	found := ""
	err := s.here.Do(func() error {
		all, err := nft.List()
		for _, l := range all {
			switch f := strings.Fields(l.Name); {
			case len(f) > 2 && f[2] == "kube-proxy":
				found = "nftables"
			case len(f) > 3 && f[2] == "nat" && f[3] == "KUBE-SERVICES":
				found = "iptables"
			}
		}
		if err != nil {
			return needs(capNet, err)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("look for kube-proxy's rules: %w", err)
	}
	return found, nil
}
