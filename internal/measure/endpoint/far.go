package endpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/measure/pipe"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

// Arg is the argument that makes toll the client for a toll on another machine (see Main).
const Arg = "__endpoints"

// request has one of its fields set.
type request struct {
	Open  *opening      `json:"open,omitempty"`
	Check string        `json:"check,omitempty"` // an endpoint's name
	Visit *visitRequest `json:"visit,omitempty"`
}

// opening may contain secrets, so it is sent over the agent's channel.
type opening struct {
	Client Client    `json:"client"`
	At     []Address `json:"at"`
}

type visitRequest struct {
	Name string      `json:"name"`
	Load sample.Load `json:"load"`
}

type reply struct {
	Path  *sample.Path  `json:"path,omitempty"`
	Visit *sample.Visit `json:"visit,omitempty"`
	Error *farError     `json:"error,omitempty"`
}

type farError struct {
	Text   string `json:"text"`
	Remedy string `json:"hint,omitempty"`
	Status int    `json:"status,omitempty"` // of an HTTP server
}

func (e *farError) Error() string { return e.Text }

func (e *farError) Hint() string { return e.Remedy }

func (e *farError) Unwrap() error {
	if e.Status == 0 {
		return nil
	}
	return &openai.StatusError{Code: e.Status}
}

func told(err error) *farError {
	if err == nil {
		return nil
	}
	out := &farError{Text: err.Error(), Remedy: hint.Of(err)}
	var status *openai.StatusError
	if errors.As(err, &status) {
		out.Status = status.Code
	}
	return out
}

// far visits endpoints by a process on another machine, which also looks names up there.
type far struct {
	client Client
	at     []Address
	facts  map[string]sample.Path

	peer    Peer
	line    *pipe.Line[reply] // nil: no process
	process *path.Process
	checked map[string]bool // by this process
}

func newFar(c Client, at []Address) *far {
	return &far{client: c, at: here(at), facts: map[string]sample.Path{}}
}

func (f *far) Names() []string {
	var out []string
	for _, a := range f.at {
		out = append(out, a.Name)
	}
	return out
}

func (f *far) Paths() []sample.Path { return paths(f.Names(), f.facts) }

// Check connects to the machine and checks each endpoint from there.
func (f *far) Check(ctx context.Context) (err error) {
	if f.peer, err = f.client.Reach(ctx); err != nil {
		return err
	}
	for _, name := range f.Names() {
		if f.client.Progress != nil {
			f.client.Progress(name)
		}
		p, err := f.check(ctx, name)
		if err != nil {
			return err
		}
		if p.Facts == nil {
			p.Facts = map[string]string{}
		}
		p.Route, p.Facts["from"], p.Facts["peer"] = name, vantage.Remote, f.peer.About
		f.facts[name] = p
	}
	return nil
}

// Visit makes the visit from the other machine. If the process there has ended, Visit starts
// another one.
func (f *far) Visit(ctx context.Context, cell sample.Cell, l sample.Load, v *sample.Visit) error {
	if err := f.gone(); err != nil { // nothing there will answer any more
		return err
	}
	if _, err := f.check(ctx, cell.Route); err != nil {
		return err
	}
	r, err := f.do(ctx, request{Visit: &visitRequest{cell.Route, l}})
	if r.Visit == nil {
		return cmp.Or(err, errors.New("the peer returned no result of the visit"))
	}
	r.Visit.Turn = v.Turn
	*v = *r.Visit
	return err
}

// check checks an endpoint, and starts a process if there is none. If the process has checked the
// endpoint before, check returns the zero Path.
func (f *far) check(ctx context.Context, name string) (sample.Path, error) {
	if f.line == nil {
		if err := f.open(ctx); err != nil {
			return sample.Path{}, err
		}
	}
	if f.checked[name] {
		return sample.Path{}, nil
	}
	r, err := f.do(ctx, request{Check: name})
	if err == nil && r.Path == nil {
		err = errors.New("the peer returned no result of its check")
	}
	if err != nil {
		return sample.Path{}, err
	}
	f.checked[name] = true
	return *r.Path, nil
}

func (f *far) open(ctx context.Context) (err error) {
	if f.process, err = f.peer.Start(path.Command{Args: []string{Arg}}); err != nil {
		return err
	}
	f.line, f.checked = pipe.New[reply](f.process.In, f.process.Out), map[string]bool{}
	_, err = f.do(ctx, request{Open: &opening{f.client, f.at}})
	return err
}

// do sends a request and waits for the reply, which may contain a visit even if there is an error.
// If no reply comes or ctx ends, do ends the process.
func (f *far) do(ctx context.Context, o request) (reply, error) {
	err := f.line.Send(o)
	var r reply
	if err == nil {
		r, err = f.line.Await(ctx)
	}
	if err != nil {
		ended := f.end()
		if gone := f.gone(); gone != nil {
			return reply{}, gone
		}
		if errors.Is(err, pipe.ErrDied) && ended != nil {
			err = ended
		}
		return reply{}, fmt.Errorf("%s: %w", f.peer.Name(), err)
	}
	if r.Error != nil {
		return r, r.Error
	}
	return r, nil
}

func (f *far) gone() error {
	if f.peer.Err == nil {
		return nil
	}
	if err := f.peer.Err(); err != nil {
		return &path.LeftError{Node: f.peer.Name(), Err: err}
	}
	return nil
}

func (f *far) end() error {
	if f.line == nil {
		return nil
	}
	_ = f.process.Kill()
	_ = f.line.Close()
	err := f.process.Wait()
	f.line, f.process = nil, nil
	return err
}

// Close ends the process, and with it whatever its clients left running.
func (f *far) Close() error {
	if f.line == nil {
		return nil
	}
	ended := make(chan struct{})
	process := f.process
	_ = f.line.Close() // it ends with its input, and its keepers with it
	go func() { _ = process.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(closeLimit):
		_ = process.Kill()
		<-ended
	}
	f.line, f.process = nil, nil
	return nil
}

const closeLimit = 3 * time.Second

// Main runs the client side on a remote machine: it reads endpoints and requests from in and writes
// results to out until the input ends. locate is as in Client.
func Main(in io.Reader, out io.Writer, locate Locate) (err error) {
	m, err := meter.New()
	if err != nil {
		return err
	}
	w := &worker{askers: map[string]Asker{}, locate: locate, meter: m}
	defer func() { err = errors.Join(err, w.close()) }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	requests := make(chan request)
	go func() {
		defer close(requests)
		defer cancel() // the present request ends with the input
		for dec := json.NewDecoder(in); ; {
			var o request
			if dec.Decode(&o) != nil {
				return
			}
			requests <- o
		}
	}()
	enc := json.NewEncoder(out)
	for o := range requests {
		r, err := w.obey(ctx, o)
		r.Error = told(err)
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// worker has an asker for each endpoint, so that each can be checked separately.
type worker struct {
	askers map[string]Asker
	locate Locate
	meter  *meter.Meter
}

func (w *worker) close() error {
	var errs []error
	for _, a := range w.askers {
		errs = append(errs, a.Close())
	}
	return errors.Join(errs...)
}

func (w *worker) obey(ctx context.Context, o request) (r reply, err error) {
	switch {
	case o.Open != nil:
		o.Open.Client.Locate = w.locate
		for _, a := range here(o.Open.At) {
			if w.askers[a.Name], err = o.Open.Client.near([]Address{a}); err != nil {
				delete(w.askers, a.Name)
				return r, err
			}
		}
		return r, nil
	case o.Check != "":
		a := w.askers[o.Check]
		if a == nil {
			return r, fmt.Errorf("no endpoint is called %q", o.Check)
		}
		if err := a.Check(ctx); err != nil {
			return r, err
		}
		r.Path = &slices.Clone(a.Paths())[0]
		return r, nil
	case o.Visit != nil && w.askers[o.Visit.Name] != nil:
		r.Visit = &sample.Visit{}
		return r, w.visit(ctx, *o.Visit, r.Visit)
	}
	return r, errors.New("unknown request")
}

// visit reads this machine's meters before and after.
func (w *worker) visit(ctx context.Context, o visitRequest, v *sample.Visit) error {
	first, err := w.meter.Read()
	if err != nil {
		return err
	}
	if err := w.askers[o.Name].Visit(ctx, sample.Cell{Route: o.Name}, o.Load, v); err != nil {
		return err
	}
	last, err := w.meter.Read()
	if err != nil {
		return err
	}
	if v.Elapsed == 0 { // otherwise the visit recorded closer readings
		v.Metered = sample.Metered{Machine: meter.Since(first, last),
			Elapsed: last.At.Sub(first.At).Seconds()}
	}
	return nil
}
