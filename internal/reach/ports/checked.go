package ports

import "slices"

// TakeChecks replaces what sockets alone suggest about this machine's clients by what their real
// connections got. It changes nothing in a report with connections in a copy of the machine.
func (r *Report) TakeChecks() {
	for n := range r.Checks {
		k := &r.Checks[n]
		for i := range r.Ports {
			row := &r.Ports[i]
			p, ok := row.Paths[k.Client]
			if !ok || row.Proto != "tcp" || p.Dial != k.Dial || !slices.Contains(p.Doubt, Untried) {
				continue
			}
			k.Agrees = true // with what it replaces
			row.Paths[k.Client] = p.after(*k)
			for d := range row.Dials {
				if o := row.Dials[d]; o.Client == k.Client && o.Dial == k.Dial {
					row.Dials[d] = o.after(*k)
				}
			}
		}
	}
	r.Exposure = r.exposure()
	r.Answer = r.answer()
}

// after returns the path as a real connection found it.
func (p Path) after(k Check) Path {
	p.Tried = k.Got
	switch k.Got {
	case "refused":
		p.Kind, p.Why, p.Doubt = Nothing, "this machine's own connection was refused", nil
	case "timeout":
		p.Kind, p.Why, p.Doubt = Blocked, "this machine's own connection was not answered", nil
	case "connected", "closed": // rules may send it elsewhere than the row's socket suggests
		if p.Kind == Unknown {
			p.Doubt = slices.DeleteFunc(slices.Clone(p.Doubt),
				func(d string) bool { return d == Untried })
		}
	}
	return p
}
