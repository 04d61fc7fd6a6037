package swarm

// cards adds the network cards of both nodes that the path crosses.
func (s *site) cards() error {
	for _, e := range []*end{s.server, s.client} {
		all, crossed, err := e.agent.Cards(s.ctx, e.card.Name)
		if err != nil {
			return err
		}
		s.path.AddCards("node "+e.Name, all, crossed)
	}
	return nil
}
