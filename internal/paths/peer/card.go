package peer

import "github.com/bridgetoll/bridgetoll/internal/paths/path/local"

// cards adds the network cards of both machines at the ends of the wire.
func (s *site) cards() error {
	if err := local.Cards(s.path, s.run.here, thisMachine, s.here.Device, true); err != nil {
		return err
	}
	all, crossed, err := s.run.agent.Cards(s.ctx, s.there.Device)
	s.path.AddCards(s.run.agent.Name(), all, crossed)
	return err
}
