package agent

import (
	"context"
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

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
