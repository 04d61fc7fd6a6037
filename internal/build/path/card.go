package path

import "github.com/bridgetoll/bridgetoll/internal/record/sample"

// AddCards notes network cards of a place, and which of them, by name, all of the path's packets
// cross there.
func (p *Path) AddCards(where string, all []sample.Card, crossed []string) {
	for _, c := range all {
		c.Where = where
		p.Cards = append(p.Cards, c)
	}
	for _, name := range crossed {
		p.Crosses = append(p.Crosses, sample.CardName{Name: name, Where: where})
	}
}
