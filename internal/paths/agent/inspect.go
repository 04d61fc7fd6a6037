package agent

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"unicode/utf8"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Spot is a network namespace on an agent's machine, like path/local.Inspected on this one. Reading
// its rules needs CAP_NET_ADMIN.
type Spot struct {
	Namespace string       `json:"namespace,omitempty"` // as in Counter
	Where     string       `json:"where"`
	Devices   []string     `json:"devices,omitempty"` // none: all
	To        []netip.Addr `json:"to,omitempty"`
}

// Inspect reads a namespace's settings. It takes at most 5 s.
func (a *Agent) Inspect(s Spot) ([]path.Setting, error) {
	ctx, cancel := context.WithTimeoutCause(
		context.Background(), readLimit, fmt.Errorf("it gave no settings within %s", readLimit))
	defer cancel()
	ans, err := a.ask(ctx, request{Inspect: &s}, 0)
	for i := range ans.Settings {
		ans.Settings[i].Where = s.Where
	}
	return ans.Settings, err
}

func (s *server) inspect(at Spot) ([]path.Setting, error) {
	all, err := local.Inspect([]local.Inspected{
		{Space: space{at.Namespace, s.here}, Where: at.Where, Devices: at.Devices, To: at.To}})
	switch {
	case err != nil && lacks(err) == "":
		return nil, needs(capNet, err)
	case err != nil:
		return nil, err
	}
	for i := range all {
		x := &all[i]
		x.Where = ""
		x.Of, x.What, x.Value = brief(x.Of), brief(x.What), brief(x.Value)
	}
	return all, nil
}

// brief shortens a long text. A checksum replaces the end, so that differences there still show.
func brief(s string) string {
	if utf8.RuneCountInString(s) <= maxText {
		return s
	}
	const beginning = maxText - 50
	return fmt.Sprintf("%s … (%d bytes, checksum %08x)", string([]rune(s)[:beginning]), len(s),
		crc32.ChecksumIEEE([]byte(s)))
}

// Router adds routes on an agent's machine. Routes that were not removed end with the agent.
type Router interface {
	// Lay adds a route. It needs CAP_NET_ADMIN.
	Lay(l link.Laid) error
	// Lift removes a route that Lay added. It returns nil if the route does not exist.
	Lift(l link.Laid) error
}

var errNoRouter = errors.New("this agent cannot add routes")

type layRequest struct {
	link.Laid
	Lift bool `json:"lift,omitempty"`
}

// Lay adds a route on the agent's machine. The caller calls lift to remove it. If it does not, the
// agent removes the route when it exits.
func (a *Agent) Lay(ctx context.Context, l link.Laid) (lift func() error, err error) {
	lift = func() error {
		_, err := a.ask(context.Background(), request{Lay: &layRequest{l, true}}, 0)
		if a.Err() != nil {
			return nil //nolint:nilerr // the agent removes it when it ends
		}
		return err
	}
	// Without ctx, because a route that the agent adds must be removed.
	if _, err := a.ask(context.WithoutCancel(ctx), request{Lay: &layRequest{l, false}}, 0); err != nil {
		return nil, errors.Join(err, lift())
	}
	return lift, nil
}

func (o layRequest) check() error {
	if !o.Valid() {
		return fmt.Errorf("%w: %s by %s is not a route", errNonsense, o.To, o.Neighbour())
	}
	return nil
}

func (s *server) lay(o layRequest) error {
	r := s.config.Router
	switch {
	case r == nil:
		return errNoRouter
	case o.Lift:
		return r.Lift(o.Laid)
	}
	return r.Lay(o.Laid)
}

// Cards returns the result of link.Cards for a device in the agent's own namespace.
func (a *Agent) Cards(ctx context.Context, device string) (all []sample.Card, crossed []string,
	err error) {
	ans, err := a.ask(ctx, request{Cards: device}, 0)
	if err != nil || ans.Cards == nil {
		return nil, nil, err
	}
	for i := range ans.Cards.All {
		ans.Cards.All[i].Where = a.hello.Name
	}
	return ans.Cards.All, ans.Cards.Crossed, nil
}

type cardsAnswer struct {
	All     []sample.Card `json:"all,omitempty"`
	Crossed []string      `json:"crossed,omitempty"`
}

func (s *server) cards(device string) (out *cardsAnswer, err error) {
	out = &cardsAnswer{}
	err = s.here.Do(func() (err error) {
		out.All, out.Crossed, err = link.Cards(device)
		return err
	})
	return out, err
}

// Bounds for the cards below one device, and for the lists of a card.
const (
	maxCards = 64
	maxLists = 1024
)

// check makes all text printable, and rejects impossible answers.
func (c *cardsAnswer) check() error {
	if len(c.All) > maxCards || len(c.Crossed) > len(c.All) {
		return fmt.Errorf("%w: %d network cards", errNonsense, len(c.All))
	}
	for i := range c.All {
		x := &c.All[i]
		if len(x.Interrupts) > sample.MaxInterrupts ||
			max(len(x.RPS), len(x.XPS), len(x.Offloads)) > maxLists ||
			max(x.Speed, x.MaxSpeed, x.PartnerSpeed) > sample.MaxSpeed {
			return fmt.Errorf("%w: a network card with impossible values", errNonsense)
		}
		printable.Fields(x)
		for _, text := range []*string{&x.Name, &x.Where, &x.Under, &x.Driver, &x.Version,
			&x.Firmware, &x.Bus, &x.Duplex} {
			*text = clean(*text)
		}
		for k := range x.Interrupts {
			n := &x.Interrupts[k]
			n.Name, n.CPUs = clean(n.Name), clean(n.CPUs)
		}
	}
	for i := range c.Crossed {
		c.Crossed[i] = clean(c.Crossed[i])
	}
	return nil
}
