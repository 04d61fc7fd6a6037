package docker

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// aJournal replaces the network namespace's name by where, which may contain parts of it; "" keeps
// it.
func aJournal(t *testing.T, dir, mark, where string, made []dockerapi.Entry) (file string) {
	t.Helper()
	j, err := dockerapi.NewJournal(dir, dockerapi.NewID(), mark, os.Getenv("DOCKER_HOST"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range made {
		if err := j.Add(e.Kind, e.Name); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if where != "" {
		text, err := os.ReadFile(j.File())
		if err != nil {
			t.Fatal(err)
		}
		text = regexp.MustCompile(`(?m)^namespace (.*)$`).ReplaceAll(
			text, []byte("namespace "+where))
		if err := os.WriteFile(j.File(), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return j.File()
}

func cleaned(dir string) (removed []string, err error) {
	return (&dockerapi.Clean{StateDir: dir, Parts: []dockerapi.Part{Leftovers()}}).Run(
		context.Background())
}

// Unmarked things are removed only if a journal names them.
func TestBesideCleansTheMachine(t *testing.T) {
	daemon(t)
	before := truth(t)
	gone := journal.Mark() + "9" // of another start of this PID
	if journal.Judge(gone) != journal.Gone {
		t.Fatalf("%s is not gone", gone)
	}
	sh(t, `for d in marked 00000001 alive 00000002; do ip link add toll$d type bridge; done; ip link add users type bridge
ip link set tollmarked alias `+tagOf(gone)+`; ip link set tollalive alias `+tagOf(journal.Mark())+`; ip link set users alias `+tagOf(gone)+`
iptables -I DOCKER-USER -i tollmarked -m comment --comment `+tagOf(gone)+` -j ACCEPT
iptables -I DOCKER-USER -i tollalive -m comment --comment `+tagOf(journal.Mark())+` -j ACCEPT
ovs-vsctl --no-syslog add-br tollovs1 -- set bridge tollovs1 datapath_type=netdev 'external_ids:"`+dockerapi.RunLabel+`"="`+gone+`"' \
  -- add-br tollovs2 -- set bridge tollovs2 datapath_type=netdev 'external_ids:"`+dockerapi.RunLabel+`"="`+journal.Mark()+`"'`)
	dir := t.TempDir()
	aJournal(t, dir, gone, "", []dockerapi.Entry{
		{Kind: dockerapi.Link, Name: "toll00000001"}, {Kind: dockerapi.Link, Name: "tollalive"},
		{Kind: dockerapi.Link, Name: "users"},
		{Kind: dockerapi.Link, Name: "toll00000003"},
		{Kind: dockerapi.Rule, Name: "iptables tollmarked"}})
	aJournal(t, dir, gone, "an earlier boot ${1}",
		[]dockerapi.Entry{{Kind: dockerapi.Link, Name: "toll00000002"}})
	removed, err := cleaned(dir)
	if err != nil {
		t.Error(err)
	}
	slices.Sort(removed)
	want := []string{"bridge tollovs1 of Open vSwitch", "link toll00000001", "link toll00000002",
		"link tollmarked", "rule of DOCKER-USER"}
	if diff := cmp.Diff(want, removed); diff != "" {
		t.Errorf("-want +removed:\n%s", diff)
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
		t.Errorf("journals are left: %v", left)
	}
	sh(
		t,
		"ip link del tollalive && ip link del users && ovs-vsctl --no-syslog del-br tollovs2 && "+
			"iptables -D DOCKER-USER -i tollalive -m "+
			"comment --comment "+tagOf(journal.Mark())+" -j ACCEPT")
	sameTruth(t, "after clean", before)
}

// The journal must stay.
func TestBesideCleansNoOtherNamespace(t *testing.T) {
	daemon(t)
	dir := t.TempDir()
	file := aJournal(t, dir, journal.Mark()+"9", "${1}1",
		[]dockerapi.Entry{{Kind: dockerapi.Link, Name: "lo"}})
	removed, err := cleaned(dir)
	if err == nil || !strings.Contains(err.Error(), "another network namespace") ||
		len(removed) > 0 {
		t.Errorf("removed %v, %v", removed, err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error("the journal is gone")
	}
}

func TestBesideCleansOnlyOurs(t *testing.T) {
	daemon(t)
	aUsers(t)
	before := truth(t)
	dir := t.TempDir()
	aJournal(t, dir, journal.Mark()+"9", "", []dockerapi.Entry{
		{Kind: dockerapi.Image, Name: "users:1"}, {Kind: dockerapi.Network, Name: "users"},
		{Kind: dockerapi.Container, Name: "users"}, {Kind: dockerapi.Link, Name: "tollusers"},
		{Kind: dockerapi.Link, Name: "lo"},
		{Kind: dockerapi.Switch, Name: "tollovs"},
		{Kind: dockerapi.Rule, Name: "iptables tollusers"}})
	removed, err := cleaned(dir)
	if err != nil || len(removed) > 0 {
		t.Errorf("removed %q, %v", removed, err)
	}
	sameTruth(t, "after clean", before)
}

func TestBesideRefuses(t *testing.T) {
	daemon(t)
	if inSwarm() {
		t.Skip("the daemon is a swarm's")
	}
	b := &Docker{Parent: "card0"}
	for _, c := range []struct {
		name string
		mode mode.Name
		has  func(t *testing.T)
		want string
		hint string
	}{
		{name: "no-swarm", mode: mode.Overlay, want: "this Docker is not in one",
			hint: "docker swarm init"},
		{name: "no-reflection", mode: mode.MacvlanVEPA, want: "does not send frames back",
			hint: "hairpin on"},
		{name: "no-switch", mode: mode.OVS, has: func(t *testing.T) {
			t.Setenv("OVS_RUNDIR", t.TempDir())
		},
			want: "does not run on this machine", hint: "start "},
		{name: "no-programs", mode: mode.OVS, has: hidePrograms, want: "is not installed",
			hint: "install "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if b.engine != nil {
				b.engine.tries = nil
			}
			spec := path.Spec{Mode: c.mode, From: mode.FromContainer, To: mode.ToContainer}
			if c.has != nil {
				c.has(t)
			}
			err := b.Check(context.Background(), spec)
			var u *machine.UnsupportedError
			if !errors.As(err, &u) || !strings.Contains(u.Missing, c.want) ||
				!strings.Contains(u.Remedy, c.hint) {
				t.Errorf("%v", err)
			}
		})
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// A foreign bridge needs an exception in that chain.
func TestBesideRefusesWithoutAChain(t *testing.T) {
	daemon(t)
	b := &Docker{}
	e, err := b.connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if saver, err := e.userRules(); saver == "" || err != nil {
		t.Errorf("with the chain: %q, %v", saver, err)
	}
	sh(t, "iptables -E DOCKER-USER hidden") // dockerd would make it again
	_, err = e.userRules()
	sh(t, "iptables -E hidden DOCKER-USER")
	if u := new(machine.UnsupportedError); !errors.As(err, &u) ||
		!strings.Contains(u.Missing, "no chain DOCKER-USER") {
		t.Errorf("without it: %v", err)
	}
	sh(t, "iptables -E DOCKER-USER hidden; iptables -P FORWARD ACCEPT")
	saver, err := e.userRules()
	sh(t, "iptables -E hidden DOCKER-USER; iptables -P FORWARD DROP")
	if saver != "" || err != nil {
		t.Errorf("where nothing is dropped: %q, %v", saver, err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func hidePrograms(t *testing.T) {
	t.Helper()
	file, err := exec.LookPath("ovs-appctl")
	if err != nil {
		t.Fatal(err)
	}
	sh(t, "mount --bind /dev/null "+file)
	t.Cleanup(func() { sh(t, "umount "+file) })
}
