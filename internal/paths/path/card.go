package path

import "github.com/bridgetoll/bridgetoll/internal/record/sample"

// AddCards adds network cards of a place to the path. All of the path's packets cross those in
// crossed.
func (p *Path) AddCards(where string, all []sample.Card, crossed []string) {
	for _, c := range all {
		c.Where = where
		p.Cards = append(p.Cards, c)
	}
	for _, name := range crossed {
		p.Crosses = append(p.Crosses, sample.CardName{Name: name, Where: where})
	}
}
