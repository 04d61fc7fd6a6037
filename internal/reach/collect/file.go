package collect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

const (
	savedKind   = "bridgetoll.machine/"
	savedSchema = savedKind + "1"
)

type saved struct {
	Schema  string           `json:"schema"`
	Taken   time.Time        `json:"taken"`
	Facts   *ports.Facts     `json:"facts"`
	Machine *replica.Machine `json:"machine"`
}

// Save writes f and this machine's network, as Ask read it. It leaves out the client, containers'
// logs and proxies' arguments.
func Save(ctx context.Context, w io.Writer, f *ports.Facts) error {
	out := saved{Schema: savedSchema, Taken: time.Now().UTC().Truncate(time.Second)}
	if f.Copy != nil {
		out.Machine = f.Copy.Machine
	} else {
		var err error
		if out.Machine, err = replica.Read(ctx); err != nil {
			return err
		}
	}
	for i, s := range out.Machine.Spaces {
		if s.Text == nil {
			_ = out.Machine.ReadText(ctx, i) // then rules have numbers only
		}
	}
	facts := *f
	facts.Client = netip.Addr{}
	facts.Containers = slices.Clone(f.Containers)
	for i := range facts.Containers {
		facts.Containers[i].LastLog = ""
	}
	facts.Proxies = slices.Clone(f.Proxies)
	for i := range facts.Proxies {
		facts.Proxies[i].Command = nil
	}
	out.Facts = &facts
	return json.NewEncoder(w).Encode(out)
}

// Load reads what Save wrote, for AskSaved. It does not trust the file: it limits the size and
// makes the facts' text safe to print.
func Load(r io.Reader) (*ports.Facts, *replica.Machine, error) {
	b, err := io.ReadAll(io.LimitReader(r, replica.MaxFile+1))
	if err != nil {
		return nil, nil, err
	}
	if n := longestText(b); n > maxText {
		return nil, nil, tooLarge(fmt.Sprintf("a text has %d bytes, and at most %d can be judged", n,
			maxText))
	}
	var in saved
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(b, &in); {
	case len(b) > replica.MaxFile:
		return nil, nil, fmt.Errorf("the file is larger than %d MiB", replica.MaxFile>>20)
	case errors.As(err, &wrong): // its text names types of Go
		return nil, nil, fmt.Errorf("a JSON %s cannot be read as %s", wrong.Value,
			cmp.Or(printable.Line(wrong.Field), "a machine"))
	case err != nil:
		return nil, nil, err
	case in.Schema != savedSchema && strings.HasPrefix(in.Schema, savedKind):
		return nil, nil, replica.NewForeignError(fmt.Errorf("another version of toll wrote it, as %s, "+
			"and this one reads %s", printable.Line(in.Schema), savedSchema),
			"that toll reads it; "+remedy.AsRoot("toll ports --save FILE")+" writes a new one")
	case in.Schema != savedSchema:
		return nil, nil, fmt.Errorf("its schema is %q, not %q", printable.Line(in.Schema),
			savedSchema)
	case in.Facts == nil || in.Machine == nil:
		return nil, nil, errors.New("the file holds no machine")
	}
	if err := fits(in.Facts, in.Machine); err != nil {
		return nil, nil, err
	}
	printable.Fields(in.Facts)
	return in.Facts, in.Machine, nil
}

// Limits for saved machines. Each is higher than a Kubernetes node with 250 pods needs, and a
// machine of that size is judged within half a minute.
const (
	maxText       = 8 << 20 // bytes; a table of iptables-legacy is one text
	maxDevices    = 1200
	maxRoutes     = 10_000
	maxListeners  = 10_000
	maxProxies    = 5_000
	maxContainers = 2_000
	maxRules      = 100_000
)

// tooLarge says what a saved machine has too much of.
type tooLarge string

func (e tooLarge) Error() string { return string(e) }

// Hint returns what judges the machine instead.
func (e tooLarge) Hint() string { return "sudo toll ports on that machine has higher limits" }

// fits returns an error if the machine is larger than can be judged in reasonable time.
func fits(f *ports.Facts, m *replica.Machine) error {
	devices, routes, rules := 0, 0, 0
	for _, s := range m.Spaces {
		devices, routes = devices+len(s.Links), routes+len(s.Routes)
		rules += len(s.Nft.Messages) + len(s.Sets)
	}
	listeners, proxies := len(f.Listeners), len(f.Proxies)
	for _, c := range f.Containers {
		listeners, proxies = listeners+len(c.Listeners), proxies+len(c.Proxies)
	}
	for _, n := range []struct {
		what    string
		is, max int
	}{{"devices", max(devices, len(f.Devices)), maxDevices}, {"routes", routes, maxRoutes},
		{"listening sockets", listeners, maxListeners},
		{"proxies", proxies, maxProxies}, {"containers", len(f.Containers), maxContainers},
		{"rules and sets", rules, maxRules}} {
		if n.is > n.max {
			return tooLarge(fmt.Sprintf("it has %d %s, and at most %d can be judged", n.is, n.what,
				n.max))
		}
	}
	return nil
}

// longestText returns the length in bytes of the longest string of a JSON text.
func longestText(b []byte) (longest int) {
	inside, start := false, 0
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '"' && inside:
			inside, longest = false, max(longest, i-start)
		case b[i] == '"':
			inside, start = true, i+1
		case b[i] == '\\' && inside:
			i++
		}
	}
	return longest
}
