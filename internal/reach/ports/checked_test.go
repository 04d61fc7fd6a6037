package ports

import (
	"reflect"
	"slices"
	"testing"
)

// Without root, what this machine's own connections get replaces suppositions.
func TestTakeChecks(t *testing.T) {
	f := twoFamilies()
	f.Copy = nil
	f.Listeners[0].Owners = nil // another user's
	r := Judge(f, 0)
	at := slices.IndexFunc(r.Ports, func(row Row) bool { return row.Port == 22 })
	before := r.Ports[at].Paths[OwnAddr]
	if before.Kind != Unknown || !before.untried() {
		t.Fatalf("%+v", before)
	}
	remote := r.Ports[at].Paths[Remote]
	for _, x := range []struct {
		got     string
		kind    PathKind
		untried bool
		doubts  int
	}{{"connected", Unknown, false, 1}, {"closed", Unknown, false, 1}, {"refused", Nothing, false, 0},
		{"timeout", Blocked, false, 0}, {"error", Unknown, true, 2}} {
		r := Judge(f, 0)
		r.Checks = []Check{{Client: OwnAddr, Dial: before.Dial, Got: x.got, Expected: before.Kind}}
		r.TakeChecks()
		p := r.Ports[at].Paths[OwnAddr]
		if p.Kind != x.kind || p.untried() != x.untried ||
			len(p.Doubt) != x.doubts || p.Tried != x.got || !r.Checks[0].Agrees {
			t.Errorf("%s: %+v, %+v", x.got, p, r.Checks)
		}
		if dial := r.Ports[at].Dials[slices.IndexFunc(r.Ports[at].Dials, func(o Path) bool {
			return o.Client == OwnAddr
		})]; dial.Kind != x.kind {
			t.Errorf("%s: the list of connections has %+v", x.got, dial)
		}
		if !reflect.DeepEqual(r.Ports[at].Paths[Remote], remote) {
			t.Errorf("%s: another machine's path changed: %+v", x.got, r.Ports[at].Paths[Remote])
		}
	}
}

// Connections in a copy decide, not the machine's own.
func TestTakeChecksWithACopy(t *testing.T) {
	r := &Report{Ports: []Row{{Port: 22, Proto: "tcp", Paths: map[Client]Path{
		OwnAddr: {Kind: Direct, Dial: "192.0.2.1:22"}}}},
		Checks: []Check{{Client: OwnAddr, Dial: "192.0.2.1:22", Got: "refused"}}}
	r.TakeChecks()
	if p := r.Ports[0].Paths[OwnAddr]; p.Kind != Direct || p.Tried != "" || r.Checks[0].Agrees {
		t.Errorf("%+v, %+v", p, r.Checks)
	}
}
