// Package house holds the one test that keeps the rooms apart.
package house

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/bridgetoll/bridgetoll/internal/"

// mayImport is the table of ARCHITECTURE.md: which rooms of ours a room may
// import. A room that is not listed is a mistake in one of the two.
var mayImport = map[string][]string{
	"dockerhost":    {},
	"firewall":      {},
	"mode":          {},
	"printable":     {},
	"sample":        {"printable"},
	"secret":        {},
	"sse":           {},
	"stats":         {},
	"undo":          {},
	"load":          {},
	"machine":       {"printable", "sample"},
	"mesh":          {"sample", "stats"},
	"openai":        {"printable", "secret", "sse"},
	"plan":          {"mesh", "mode", "sample"},
	"kernel/netns":  {},
	"kernel/sysctl": {},
	"kernel/ipvs":   {},
	"kernel/link":   {},
	"kernel/nft":    {"firewall"},
	"kernel/sock":   {},
	"kernel/xfrm":   {},
	"path":          {"mode", "sample", "undo"},
	"path/local":    {"kernel/conntrack", "kernel/link", "kernel/nft", "kernel/sock", "kernel/sysctl", "path", "sample"},
	"path/pathtest": {"mode", "path", "sample"},
	"owner":         {},
	"docker":        {"dockerhost", "firewall", "kernel/link", "kernel/netns", "kernel/nft", "kernel/sock", "kernel/sysctl", "lab/ovs", "mode", "owner", "path", "path/local", "sample", "undo"},
	"lab":           {"kernel/ipvs", "kernel/link", "kernel/netns", "kernel/nft", "kernel/sock", "kernel/sysctl", "kernel/xfrm", "lab/ovs", "lab/relay", "mode", "owner", "path", "path/local", "sample", "undo"},
	"path/fake":     {"load", "meter", "mode", "path", "program", "sample", "worker"},
	"lab/ovs":       {},
	"lab/relay":     {},
	"pipe":          {},
	"program":       {"meter", "pipe", "printable", "sample"},
	"worker":        {"load", "pipe", "sample"},
	"agent":         {"kernel/conntrack", "kernel/link", "kernel/netns", "kernel/xfrm", "load", "machine", "meter", "path", "path/local", "printable", "sample"},
	"swarm":         {"agent", "docker", "mode", "path", "path/local", "sample", "undo"},
	"meter":         {"sample"},
	"database":      {"printable", "secret"},
	"endpoint":      {"database", "openai", "sample"},
	"engine":        {"load", "meter", "mode", "path", "plan", "program", "sample", "worker"},
	"analysis":      {"mesh", "mode", "sample", "stats"},
	"ports":         {"analysis", "firewall"},
	"ports/collect": {"dockerhost", "firewall", "kernel/conntrack", "kernel/link", "kernel/netns", "kernel/nft", "kernel/sock", "kernel/sysctl", "meter", "ports", "printable"},
	"published":     {"analysis", "mode", "sample", "stats"},
	"report":        {"analysis", "mode", "ports", "published", "sample", "stats"},
	"bench":         {"kernel/link", "kernel/netns", "kernel/sysctl", "load", "machine", "meter", "sample", "stats", "worker"},

	"kernel/conntrack": {},
}

func TestRoomsKeepApart(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		room, ok := strings.CutPrefix(p.ImportPath, module)
		if !ok {
			continue
		}
		seen[room] = true
		may, listed := mayImport[room]
		if !listed {
			t.Errorf("room %s is not in the table", room)
		}
		for _, i := range p.Imports {
			if ours, ok := strings.CutPrefix(i, module); ok && !slices.Contains(may, ours) {
				t.Errorf("%s imports %s; it may import %v", room, ours, may)
			}
		}
	}
	for room := range mayImport {
		if !seen[room] {
			t.Errorf("room %s is in the table and not in the house", room)
		}
	}
}
