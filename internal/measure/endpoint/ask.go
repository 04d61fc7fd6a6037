package endpoint

import (
	"context"
	"errors"
	"io"

	"github.com/bridgetoll/bridgetoll/internal/measure/database"
	"github.com/bridgetoll/bridgetoll/internal/measure/observe"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Client describes what is sent to endpoints. One of Chat, SQL and Program is set.
type Client struct {
	Chat *openai.Options `json:"chat,omitempty"`
	// Whole means that visits request responses in one piece, too, for the load batch, and NoStream
	// that they request no others.
	Whole    bool              `json:"whole,omitempty"`
	NoStream bool              `json:"no_stream,omitempty"`
	SQL      *database.Options `json:"sql,omitempty"`
	Program  *sample.Program   `json:"program,omitempty"`
	// Requests means that requests are traced: those of Program, or else of toll's own client, with
	// Password for their server.
	Requests bool   `json:"-"`
	Password string `json:"-"`
	// Locate finds the servers; nil: they are unknown.
	Locate Locate `json:"-"`
	// Reach connects to the machine of distant addresses; nil: none are distant.
	Reach func(context.Context) (Peer, error) `json:"-"`
	// Beyond connects to a machine on which the servers of Chat are looked for, too, if this one does
	// not have them; nil: there is none.
	Beyond func(context.Context) (Peer, error) `json:"-"`
	// Progress, unless nil, is called with each route before a foreign client first runs over it.
	Progress func(name string) `json:"-"`
}

// Peer is another machine, on which this program runs the client.
type Peer struct {
	path.Place
	About string       // describes the machine for reports
	Err   func() error // why it is gone, or nil
	// Denied is the error if toll may not capture packets there.
	Denied string
}

// Asker sends requests to endpoints.
type Asker interface {
	Names() []string
	// Check sends each endpoint a request and returns the first failure.
	Check(ctx context.Context) error
	// Paths describes the endpoints after Check.
	Paths() []sample.Path
	// Visit visits the endpoint cell.Route and records the visit in v.
	Visit(ctx context.Context, cell sample.Cell, l sample.Load, v *sample.Visit) error
	Close() error
}

// New parses the addresses; it does not connect. The caller calls Close.
func New(c Client, at []Address) (Asker, error) {
	a := &askers{of: map[string]Asker{}}
	var near, far []Address
	for _, x := range at {
		if a.names = append(a.names, x.Name); x.place().Distant() {
			far = append(far, x)
		} else {
			near = append(near, x)
		}
	}
	if len(near) > 0 || len(far) == 0 {
		asker, err := c.near(near)
		if err != nil {
			return nil, err
		}
		a.add(asker)
	}
	if len(far) > 0 {
		// an address that is wrong here is wrong there, too
		if _, err := c.near(here(far)); err != nil {
			return nil, err
		}
		a.add(newFar(c, far))
	}
	return a, nil
}

func here(at []Address) []Address {
	var out []Address
	for _, a := range at {
		a.From = nil
		out = append(out, a)
	}
	return out
}

func (c Client) near(at []Address) (Asker, error) {
	switch {
	case c.Chat != nil:
		chat, err := newChat(at, *c.Chat, c.Beyond)
		if err != nil {
			return nil, err
		}
		chat.Whole, chat.NoStream, chat.Locate = c.Whole, c.NoStream, c.Locate
		return chat, nil
	case c.SQL != nil:
		db, err := newSQL(at, *c.SQL)
		if err != nil {
			return nil, err
		}
		db.Locate = c.Locate
		return db, nil
	case c.Program != nil:
		var udp []string
		var err error
		if c.Requests {
			at, udp, err = overUDP(at)
		}
		if err != nil {
			return nil, err
		}
		p, err := newProgram(at, *c.Program)
		if err != nil {
			return nil, err
		}
		p.Progress, p.Locate = c.Progress, c.Locate
		if c.Requests {
			p.ways = map[string]*observe.Way{}
		}
		for _, name := range udp {
			p.routes[name].udp = true
		}
		return p, nil
	case c.Requests:
		q, err := newRequests(at, c.Password)
		if err != nil {
			return nil, err
		}
		q.Locate = c.Locate
		return q, nil
	}
	return nil, errors.New("no client for the endpoints")
}

type askers struct {
	names []string
	all   []Asker
	of    map[string]Asker
}

func (a *askers) add(x Asker) {
	a.all = append(a.all, x)
	for _, name := range x.Names() {
		a.of[name] = x
	}
}

func (a *askers) Names() []string { return a.names }

func (a *askers) Check(ctx context.Context) error {
	for _, x := range a.all {
		if err := x.Check(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (a *askers) Paths() []sample.Path {
	found := map[string]sample.Path{}
	for _, x := range a.all {
		for _, p := range x.Paths() {
			found[p.Route] = p
		}
	}
	return paths(a.names, found)
}

func (a *askers) Visit(ctx context.Context, cell sample.Cell, l sample.Load,
	v *sample.Visit) error {
	return a.of[cell.Route].Visit(ctx, cell, l, v)
}

func (a *askers) Close() error {
	var errs []error
	for _, x := range a.all {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}

var _ io.Closer = Asker(nil)
