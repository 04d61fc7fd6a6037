package view

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

func TestRemedyBlocks(t *testing.T) {
	const long = "sudo iptables -t raw -A PREROUTING -d 172.17.0.2 ! -i docker0 -p tcp -m multiport " +
		"--dports 8080,8081 -j DROP"
	for remedy, want := range map[string]string{
		"dial 127.0.0.1 instead of localhost": "  remedy: dial 127.0.0.1 instead of localhost\n",
		"sudo a -b; sudo c (tried in a copy)": "  remedy (tried in a copy):\n    sudo a -b\n    sudo c\n",
		"upgrade it, or: sudo a (not tried: no copy); or, if nobody needs it, sudo b (tried in a copy)": "" +
			"  remedy: upgrade it, or (not tried: no copy):\n    sudo a\n" +
			"  or, if nobody needs it (tried in a copy):\n    sudo b\n",
		"sudo a (tried in a copy as sudo b; sudo c); other machines then need a route": "" +
			"  remedy (tried in a copy as sudo b; sudo c):\n    sudo a\n" +
			"  other machines then need a route\n",
	} {
		d := document.Document{Kind: document.PortList, Sections: []document.Section{
			{Blocks: remedyBlocks(1, remedy)}}}
		if got := written(t, "table", d, format.Options{}); got != want {
			t.Errorf("%s:\ngot\n%swant\n%s", remedy, got, want)
		}
	}
	d := document.Document{Kind: document.PortList, Sections: []document.Section{
		{Blocks: remedyBlocks(1, long+" (tried in a copy)")}}}
	_, got, _ := strings.Cut(written(t, "table", d, format.Options{}), "\n")
	if text := strings.Join(strings.Fields(strings.ReplaceAll(got, "\\\n", " ")), " "); text != long {
		t.Errorf("a shell reads %q", text)
	}
}
