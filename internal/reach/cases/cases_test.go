// Package cases builds machines that people reported in public, each in namespaces of its own. A
// real client dials from each place, and the copy of the machine must give the same answers: who
// answers, and which client's address the server sees. Dumps of these machines are judged without
// root.
package cases

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	_ "github.com/bridgetoll/bridgetoll/internal/reach/replica/start" // holds copies
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
)

var update = flag.Bool("update", false, "write what clients get, and the dumps of the machines")

const (
	// timeout is longer than the kernel tries to resolve a neighbour that does not exist.
	timeout = 4 * time.Second
	// repeats is for rules that choose among a few servers at random.
	repeats = 24
)

func TestMain(m *testing.M) {
	ours, err := play(os.Args[1:])
	if ours {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	// What a process is said to use at most is no less than what this one used when it started it:
	// see judgeMutant.
	debug.SetMemoryLimit(256 << 20)
	// the tests wait more than they work
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	pathtest.RemoveToll()
	os.Exit(code)
}

func TestSituations(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "namespaces of a machine need root")
	}
	filters := map[string]string{"iptables": testversions.Of("iptables", "--version"),
		"nft": testversions.Of("nft", "--version")}
	for _, s := range situations(t, "*") {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for program, version := range filters {
				if strings.Contains(s.setup, program) {
					testversions.Ran(t, program, version, "`toll ports` against clients")
				}
			}
			m := start(t, s)
			m.compareClients(t, s)
			d := m.dump(s)
			if *update {
				d.save(t, s.dump())
			}
			same(t, "the copy", d.dial(t, s), s.answers)
		})
	}
}

// compareClients makes real connections, and compares what clients get with the situation's answers
// or, with -update, writes these.
func (m *machine) compareClients(t *testing.T, s *situation) {
	t.Helper()
	got := m.dial(s)
	if *update {
		if err := s.save(got); err != nil {
			t.Fatal(err)
		}
		s.answers = got
	}
	same(t, "a client", got, s.answers)
}

// dial makes real connections. It repeats those whose answers differ from the expected ones,
// because a busy machine may not answer in time.
func (m *machine) dial(s *situation) []string {
	out := make([]string, len(s.dials))
	var each sync.WaitGroup
	for i, d := range s.dials {
		each.Go(func() {
			for range 3 {
				out[i] = m.answers(d)
				if i < len(s.answers) && out[i] == s.answers[i] {
					break
				}
			}
		})
	}
	each.Wait()
	return out
}

func (m *machine) answers(d dial) string {
	times := 1
	if d.several {
		times = repeats
	}
	all := make([]answer, times)
	var each sync.WaitGroup
	for i := range times {
		each.Go(func() {
			got, err := m.sample(d)
			if err != nil {
				m.t.Errorf("%s: %v", d, err)
			}
			all[i] = got
		})
	}
	each.Wait()
	return d.String() + ": " + join(all)
}

// same compares answers. It skips those that are "".
func same(t *testing.T, who string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d answers, %d are expected", who, len(got), len(want))
	}
	for i := range got {
		if got[i] != "" && !agrees(got[i], want[i]) {
			t.Errorf("%s gets\n\t%s\nwant\n\t%s", who, got[i], want[i])
		}
	}
}

// agrees reports whether got is the expected answer. Rules that choose at random need not have
// chosen all.
func agrees(got, want string) bool {
	dial, answers, _ := strings.Cut(want, ": ")
	all := strings.Split(answers, " | ")
	some, ok := strings.CutPrefix(got, dial+": ")
	return got == want || ok && !slices.ContainsFunc(strings.Split(some, " | "), func(a string) bool {
		return !slices.Contains(all, a)
	})
}

// dump is a machine with stand-ins for its servers, as it is saved to a file.
type dump struct {
	Machine *replica.Machine `json:"machine"`
	Sockets []replica.Socket `json:"sockets"`
	// Servers are the names of those at the sockets.
	Servers []string `json:"servers"`
	// Places are indexes of Machine.Spaces. A place that is not linked to the machine has none.
	Places map[string]int `json:"places"`
}

// dump runs this program in the machine's namespaces to read the machine.
func (m *machine) dump(s *situation) *dump {
	m.t.Helper()
	var stderr bytes.Buffer
	cmd := m.command(m.self, "read")
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("%v: %s", err, &stderr)
	}
	d := &dump{Machine: &replica.Machine{}, Places: map[string]int{}}
	if err := json.Unmarshal(b, d.Machine); err != nil {
		m.t.Fatal(err)
	}
	space := func(id string) int {
		return slices.IndexFunc(d.Machine.Spaces, func(s replica.Space) bool { return s.ID == id })
	}
	for name, pid := range m.places() {
		if i := space(m.space(pid)); i >= 0 {
			d.Places[name] = i
		}
	}
	for _, s := range m.servers() {
		if i := space(s.Space); i >= 0 {
			d.Servers = append(d.Servers, s.Name)
			d.Sockets = append(d.Sockets, replica.Socket{Space: i, Proto: s.Proto, Addr: s.Addr,
				V6Only: s.Relay.IsValid() && s.Addr.Addr().Is6(), Relay: s.Relay, Device: s.Device})
		}
	}
	return d
}

// client returns the place of a dial in the copy, or false if it is not there.
func (d *dump) client(s *situation, from dial) (replica.Client, bool) {
	if c, ok := s.card(from.from); ok {
		at := from.source
		if !at.IsValid() {
			i := slices.IndexFunc(c.other, func(p netip.Prefix) bool {
				return p.Addr().Is4() == from.to.Addr().Is4()
			})
			at = c.other[i].Addr()
		}
		space := slices.IndexFunc(d.Machine.Spaces, func(s replica.Space) bool {
			return slices.ContainsFunc(s.Links, func(l link.Saved) bool { return l.Name == c.name })
		})
		return replica.Client{Space: max(space, 0), Card: c.name, Source: at}, true
	}
	space, ok := d.Places[from.from]
	return replica.Client{Space: space, Source: from.source}, ok
}

// dial makes the connections in a copy of the machine. The answer of a place that is not in the
// copy is "".
func (d *dump) dial(t *testing.T, s *situation) []string {
	t.Helper()
	session, err := replica.Start(t.Context(), d.Machine, d.Sockets)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, l := range session.Lacks() {
		t.Errorf("the copy lacks %+v", l)
	}
	var dials []replica.Dial
	var which []int
	for i, x := range s.dials {
		if c, ok := d.client(s, x); ok {
			which = append(which, i)
			dials = append(dials, replica.Dial{Client: c, Proto: x.proto, To: x.to})
		}
	}
	answers, err := session.Dial(t.Context(), dials)
	if err != nil {
		t.Fatal(err)
	}
	if len(answers) != len(dials) {
		t.Fatalf("%d answers to %d dials", len(answers), len(dials))
	}
	out := make([]string, len(s.dials))
	for i, a := range answers {
		var all []answer
		for _, o := range a.Outcomes {
			x := answer{got: string(o.Got), seen: o.Seen, from: o.From}
			if o.Socket >= 0 {
				x.server = d.Servers[o.Socket]
			}
			if o.Got == replica.Failed {
				x.got += ": " + o.Err
			}
			all = append(all, x)
		}
		out[which[i]] = s.dials[which[i]].String() + ": " + join(all)
	}
	return out
}

// TestDumps judges saved machines as a user without privileges.
func TestDumps(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Parallel()
		m := start(t, &situation{})
		copied := m.file("/run/testdata")
		if err := os.CopyFS(copied, os.DirFS("testdata")); err != nil {
			t.Fatal(err)
		}
		out, err := m.command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
			"--reset-env", "sh", "-c", "cd /run && exec bin/self -test.v -test.run '^TestDumps$'").
			CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("--- PASS: TestDumps/")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	for _, s := range situations(t, "*") {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			d := &dump{}
			if err := d.load(s.dump()); err != nil {
				t.Fatal(err)
			}
			same(t, "the copy", d.dial(t, s), s.answers)
		})
	}
}

// dump returns the file of the machine.
func (s *situation) dump() string { return strings.TrimSuffix(s.file, ".txt") + ".json.gz" }

func (d *dump) load(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	return json.NewDecoder(z).Decode(d)
}

func (d *dump) save(t testing.TB, file string) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := errors.Join(json.NewEncoder(z).Encode(d), z.Close(),
		os.WriteFile(file, b.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}
