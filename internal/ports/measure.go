package ports

import (
	"slices"
	"strings"
)

// Measure is the command that measures routes like those of a port.
type Measure struct {
	Clients []Client `json:"clients"`
	Command string   `json:"command"`

	from, proto    string
	modes, targets []string
}

// measures are the commands for the routes that were found, one for each place: what
// was found is in it beside what a published port could be instead.
func measures(rows []Row) []Measure {
	var out []Measure
	for _, c := range clients {
		for _, row := range rows {
			p, ok := row.Paths[c]
			want := cellOf(c, p.Kind)
			if !ok || want.mode == "" || p.proxy.Rootless || row.Server.Kind == "service" {
				continue
			}
			i := slices.IndexFunc(out, func(m Measure) bool { return m.from == want.from && m.proto == row.Proto })
			if i < 0 {
				out = append(out, Measure{from: want.from, proto: row.Proto})
				i = len(out) - 1
			}
			out[i].add(c, want)
		}
	}
	for i := range out {
		out[i].Command = out[i].command()
	}
	return out
}

func (m *Measure) add(c Client, want cell) {
	m.Clients = once(m.Clients, c)
	m.modes = once(m.modes, want.mode)
	target := map[Client]string{Loopback: "loopback", Loopback6: "loopback6", OwnAddr: "address"}[c]
	if target != "" {
		m.targets = once(m.targets, target)
	}
}

func once[T comparable](have []T, x T) []T {
	if slices.Contains(have, x) {
		return have
	}
	return append(have, x)
}

// command names the modes by which the targets can be reached: rules do not take
// ::1, and a proxy's client does not dial the machine's address (internal/record/mode).
func (m *Measure) command() string {
	modes := m.modes
	only := func(target string) bool { return slices.Equal(m.targets, []string{target}) }
	if !only("address") {
		modes = once(modes, "publish-proxy")
	}
	if !only("loopback6") {
		modes = once(modes, "publish-nat")
	}
	words := append([]string{"toll compare"}, modes...)
	words = append(words, "--from", m.from)
	if len(m.targets) > 0 {
		words = append(words, "--to", strings.Join(m.targets, ","))
	}
	if m.proto == "udp" {
		words = append(words, "--load", "udp-rr")
	}
	return strings.Join(words, " ")
}
