package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/reach/collect"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// TestReports compares what the report on each port says with what a real client gets.
func TestReports(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "namespaces of a machine need root")
	}
	for _, s := range situations(t, "reports/*") {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			m := start(t, s)
			m.compareClients(t, s)
			all, reports := m.compareReports(t, s, s.answers)
			checkTexts(t, s, all, reports)
		})
	}
}

// compareReports compares the list, and the report on each dialled port, with what clients get.
func (m *machine) compareReports(t *testing.T, s *situation, answers []string) (all *ports.Report,
	reports map[uint16]*ports.Report) {
	t.Helper()
	tryFor := time.Duration(0)
	if len(s.says) > 0 { // of which some are remedies
		tryFor = patience
	}
	reports = m.reports(s, tryFor, append(portsOf(s.dials), 0)...)
	all = reports[0]
	for i, d := range s.dials {
		_, want, _ := strings.Cut(answers[i], ": ")
		if !d.unlisted {
			s.compareReport(t, "the list", all, d, want)
		}
		s.compareReport(t, "the port's report", reports[d.to.Port()], d, want)
	}
	return all, reports
}

// portsOf returns the ports of dials, each once.
func portsOf(dials []dial) (out []uint16) {
	for _, d := range dials {
		if !slices.Contains(out, d.to.Port()) {
			out = append(out, d.to.Port())
		}
	}
	return out
}

// checkTexts looks for the situation's texts in the reports.
func checkTexts(t *testing.T, s *situation, all *ports.Report, reports map[uint16]*ports.Report) {
	t.Helper()
	for _, line := range s.says {
		number, text, _ := strings.Cut(line, ": ")
		not := strings.HasPrefix(number, "!")
		port, err := strconv.ParseUint(strings.TrimPrefix(number, "!"), 10, 16)
		r := reports[uint16(port)]
		if port == 0 {
			r = all
		}
		if err != nil || r == nil {
			t.Errorf("no report for %q", line)
			continue
		}
		said := saidBy(t, r)
		if strings.Contains(said, text) == not {
			t.Errorf("%q: %q, %+v", line, r.Answer, r.Traps)
		}
	}
}

// saidBy returns all texts of a report.
func saidBy(t *testing.T, r *ports.Report) string {
	t.Helper()
	b, err := json.Marshal(r)
	var v any
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v)
	slices.Sort(out)
	return strings.Join(slices.Compact(out), "\n")
}

// compareReport compares a report's path with the answer that a real client gets.
func (s *situation) compareReport(t *testing.T, which string, r *ports.Report, d dial,
	want string) {
	t.Helper()
	var got []string
	for _, exact := range []bool{true, false} {
		add := func(proto string, server ports.Server, p ports.Path) {
			if proto != d.proto || p.Dial != d.to.String() || !isFrom(r, p, d, exact) {
				return
			}
			got = append(got, s.result(d, server, p, want))
			if d.doubted && len(p.Doubt) == 0 {
				t.Errorf("%s: %s: %s, without doubt", which, d, got[len(got)-1])
			}
			if d.certain && len(p.Doubt) > 0 {
				t.Errorf("%s: %s: %s, with doubt: %+v", which, d, got[len(got)-1], p.Doubt)
			}
		}
		for _, row := range r.Ports {
			for _, p := range row.Dials {
				add(row.Proto, row.Server, p)
			}
		}
		for _, in := range r.Inside {
			for _, p := range in.Dials {
				add(in.Proto, in.Server, p)
			}
		}
		if len(got) > 0 {
			break
		}
	}
	wants := strings.Split(want, " | ")
	for _, g := range got {
		if d.doubted {
			break
		}
		if !slices.ContainsFunc(wants, func(w string) bool {
			server, seen, answered := strings.Cut(w, " sees ")
			if !answered {
				return g == "no answer" || w == "unreachable" && strings.HasPrefix(g, "? ")
			}
			seen, _, elsewhere := strings.Cut(seen, ", answers from ")
			if elsewhere && g == "no answer" { // which most clients drop
				return true
			}
			if s.has(r, d, seen) && strings.HasSuffix(g, itself) {
				seen = itself
			}
			return g == server+" sees "+seen || g == server+" sees ?" || g == "? sees ?"
		}) {
			t.Errorf("%s: %s: %s, want %s", which, d, g, want)
		}
	}
	if len(got) == 0 && (!s.lenient || strings.Contains(want, " sees ")) {
		t.Errorf("%s does not say what %s gets: %s", which, d, want)
	}
}

// result returns the path's result in the form of an answer.
func (s *situation) result(d dial, server ports.Server, p ports.Path, want string) string {
	if !p.Answers() {
		return "no answer"
	}
	if n := len(p.Hops); server.Kind == "container" && n > 0 && p.Hops[n-1].Kind == "server" {
		if want, _, ok := strings.Cut(want, " sees "); ok && strings.Contains(p.Hops[n-1].Text,
			", of "+want+" ") { // a sidecar
			server.Name = want
		}
	}
	name, seen := strings.TrimSuffix(server.Name, " (own network)"), p.Seen
	if p.Seen == p.Source && d.from != "machine" {
		seen = itself
	}
	if _, err := netip.ParseAddrPort(name); err == nil {
		name = "?" // outside the copy
		if n := len(p.Hops); n > 0 && p.Hops[n-1].Kind == "server" {
			program, _, _ := strings.Cut(p.Hops[n-1].Text, " ")
			if _, err := netip.ParseAddrPort(strings.TrimSuffix(program, ",")); err != nil {
				name = program
			}
		}
	}
	if slices.ContainsFunc(p.Doubt, func(d ports.Reason) bool {
		return strings.HasPrefix(d.Words, "whether the other machine has a route to ")
	}) &&
		want == "unreachable" {
		return "? sees ?"
	}
	if seen == "" {
		seen = "?"
	}
	return name + " sees " + seen
}

// itself is the address of a client that the server sees: the copy's clients have others.
const itself = "the client's"

// has reports whether the dial's client has the address.
func (s *situation) has(r *ports.Report, d dial, address string) bool {
	if d.to.Addr().IsLoopback() {
		return d.to.Addr().String() == address
	}
	if d.source.IsValid() && d.source.String() == address {
		return true
	}
	if c, ok := s.card(d.from); ok {
		return slices.ContainsFunc(c.other, func(p netip.Prefix) bool {
			return p.Addr().String() == address
		})
	}
	return slices.ContainsFunc(r.Containers, func(h ports.Home) bool {
		return strings.TrimSuffix(h.Name, " (own network)") == d.from &&
			slices.Contains(h.Addresses, address)
	})
}

// anybody and anybody6 are the addresses of a report's machine behind a router.
var (
	anybody  = netip.MustParseAddr("203.0.113.1")
	anybody6 = netip.MustParseAddr("2001:db8:ffff::1")
)

// isFrom reports whether the path is that of the dial's client, or of one in the same network.
func isFrom(r *ports.Report, p ports.Path, d dial, exact bool) bool {
	here := p.Client == ports.Loopback || p.Client == ports.Loopback6 || p.Client == ports.OwnAddr
	switch {
	case d.from == "machine":
		return here
	case p.Client == ports.Itself:
		return strings.TrimPrefix(p.From, "container ") == ports.NameOf(d.from)
	case p.Client == ports.Remote && r.Client != "":
		return d.source.IsValid() && r.Client == d.source.String()
	case p.Client == ports.Remote && exact && (d.source == anybody || d.source == anybody6):
		return p.From == "a machine behind "+d.from+"'s router"
	case p.Client == ports.Remote:
		return p.From == "a machine at "+d.from ||
			d.source.IsValid() && p.From == "a machine behind "+d.from+"'s router"
	case p.From == "container "+d.from || p.From == "container "+ports.NameOf(d.from):
		return true
	case exact:
		return false
	}
	for _, h := range r.Containers {
		if strings.TrimSuffix(h.Name, " (own network)") != d.from {
			continue
		}
		networks := slices.Clone(h.Networks)
		for _, a := range h.Devices {
			networks = append(networks, a.Master)
		}
		if network, ok := strings.CutPrefix(p.From, "a container on "); ok &&
			slices.Contains(networks, network) {
			return true
		}
	}
	return false
}

// reports returns the reports on ports, of which 0 is the list. The machine is read once for all.
func (m *machine) reports(s *situation, tryFor time.Duration, of ...uint16) (
	out map[uint16]*ports.Report) {
	m.t.Helper()
	args := []string{m.self, "reports", s.client, tryFor.String()}
	for _, port := range of {
		args = append(args, strconv.Itoa(int(port)))
	}
	cmd := m.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		m.t.Fatalf("%v: %s%s", err, b, &stderr)
	}
	return out
}

// reports writes reports on the machine around this process. Its containers are always listed.
func reports(client, tryFor string, of []string) error {
	ctx := context.Background()
	facts, network, err := collect.Read(ctx)
	if err != nil {
		return err
	}
	facts.Contained = "" // even if the tests run in a container
	if client != "" {
		facts.Client, err = netip.ParseAddr(client)
	}
	var terr error
	facts.TryFor, terr = time.ParseDuration(tryFor)
	if err := errors.Join(err, terr); err != nil {
		return err
	}
	homes := ports.Judge(facts, 0).Containers
	out := map[uint16]*ports.Report{}
	for _, text := range of {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return err
		}
		f := *facts
		if _, err := collect.Ask(ctx, &f, network, uint16(port)); err != nil {
			return err
		}
		if f.Copy == nil {
			return fmt.Errorf("there is no copy: %+v", f.Missing)
		}
		r := ports.Judge(&f, uint16(port))
		r.Containers = homes
		sentence.FillPorts(r)
		out[uint16(port)] = r
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}
