package docker

import (
	"os"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

func TestBesideSecondPort(t *testing.T) {
	d := daemon(t)
	b := &Docker{}
	o := promises(b, d)
	// it sums all that the machine's TCP relayed
	o.Common = func(h path.Hop) bool { return h.Expect == path.Relays }
	for _, m := range strings.Split(os.Getenv(modesEnv), ",") {
		known, _ := mode.Find(mode.Name(m))
		if !known.PerPort && known.Name != mode.Host { // these modes have nothing for single ports
			continue
		}
		from := map[mode.Placement]bool{}
		for _, r := range known.Routes {
			// One for each placement: the lab, whose rules are the same, has all of them.
			if covered(known.Name, r) || !pathtest.AllEngines() &&
				(known.Name == mode.PublishDefault || r.OnRequest() || from[r.From]) {
				continue
			}
			from[r.From] = true
			t.Run(strings.Join([]string{m, string(r.From), string(r.To)}, "-"), func(t *testing.T) {
				pathtest.SecondPort(t, b, path.Spec{Mode: known.Name, From: r.From, To: r.To}, o)
			})
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
