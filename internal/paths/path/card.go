package path

import "github.com/bridgetoll/bridgetoll/internal/record/sample"

// AddCards adds network cards of a place to the path. crossed names those that all of its packets
// cross.
func (p *Path) AddCards(where string, all []sample.Card, crossed []string) {
	for _, c := range all {
		c.Where = where
		p.Cards = append(p.Cards, c)
	}
	for _, name := range crossed {
		p.Crosses = append(p.Crosses, sample.CardName{Name: name, Where: where})
	}
}
