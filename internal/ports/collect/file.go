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
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/replica"
	"github.com/bridgetoll/bridgetoll/internal/ports"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

const savedSchema = "bridgetoll.machine/1"

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
	case in.Schema != savedSchema:
		return nil, nil, fmt.Errorf("its schema is %q, not %q", printable.Line(in.Schema),
			savedSchema)
	case in.Facts == nil || in.Machine == nil:
		return nil, nil, errors.New("the file holds no machine")
	}
	printable.Fields(in.Facts)
	return in.Facts, in.Machine, nil
}
