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
			if !ok || row.Proto != "tcp" || p.Dial != k.Dial || !p.untried() {
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

// untried reports whether the path is in doubt because it was not tried.
func (p Path) untried() bool {
	return slices.ContainsFunc(p.Doubt, func(d Reason) bool { return d.Code == Untried })
}

// after returns the path as a real connection found it.
func (p Path) after(k Check) Path {
	p.Tried = k.Got
	switch k.Got {
	case "refused":
		p.Kind, p.Why, p.Doubt = Nothing, Reason{Code: OwnRefused}, nil
	case "timeout":
		p.Kind, p.Why, p.Doubt = Blocked, Reason{Code: OwnUnanswered}, nil
	case "connected", "closed": // rules may send it elsewhere than the row's socket suggests
		if p.Kind == Unknown {
			p.Doubt = slices.DeleteFunc(slices.Clone(p.Doubt),
				func(d Reason) bool { return d.Code == Untried })
		}
	}
	return p
}
