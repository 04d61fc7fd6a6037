package ports

import (
	"strings"
	"testing"
)

func TestShortcut(t *testing.T) {
	f := healthy()
	f.Shortcuts = []Shortcut{{addrPort("127.0.0.1:8080"), addrPort("172.17.0.2:80")},
		{addrPort("[::1]:8080"), addrPort("[fd00::9]:80")}}
	r := try(f, 8080, nil)
	row := find(t, r, "0.0.0.0", 8080)
	if got := routes(row); got != "shortcut  DNAT proxy DNAT" {
		t.Errorf("%q", got)
	}
	var hops []string
	for _, h := range row.Paths[Loopback].Hops {
		hops = append(hops, h.Kind)
	}
	if got := strings.Join(hops, " "); got != "shortcut bridge veth server" {
		t.Errorf("hops: %s", got)
	}
	if got := routes(find(t, r, "::", 8080)); got != " proxy   " {
		t.Errorf("a shortcut to another container: %q", got)
	}
	if got := cellOf(Loopback, Path{Kind: ByShortcut}); got != (cell{"fast", "host", "loopback"}) {
		t.Errorf("priced as %+v", got)
	}
}
