package path

import "github.com/bridgetoll/bridgetoll/internal/record/sample"

// AddCards adds network cards of a place to the path. crossed names the cards that all of the
// path's packets cross.
func (p *Path) AddCards(where string, all []sample.Card, crossed []string) {
	for _, c := range all {
		c.Where = where
		p.Cards = append(p.Cards, c)
	}
	for _, name := range crossed {
		p.Crosses = append(p.Crosses, sample.CardName{Name: name, Where: where})
	}
}
