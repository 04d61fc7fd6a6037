package local

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Cards adds the network cards that carry a device of a namespace to the path. where is the name of
// the place. crossed means that the path's packets cross the device.
func Cards(p *path.Path, ns Space, where, device string, crossed bool) error {
	var (
		all    []sample.Card
		across []string
	)
	err := ns.Do(func() (err error) {
		all, across, err = link.Cards(device)
		return err
	})
	if err != nil {
		return fmt.Errorf("describe %s: %w", where, err)
	}
	if !crossed {
		across = nil
	}
	p.AddCards(where, all, across)
	return nil
}
