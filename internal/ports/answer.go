package ports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Reach is the widest place from which a port is reached.
type Reach string

// The places, widest first. A port that other machines reach is also reached by this one.
const (
	FromMachines   Reach = "other machines"
	FromContainers Reach = "containers"
	FromHere       Reach = "this machine"
	FromNowhere    Reach = "nobody"
)

// Exposed is a port with the widest place from which it is reached.
type Exposed struct {
	Port   uint16 `json:"port"`
	Proto  string `json:"protocol"`
	Server string `json:"server"`
	Reach  Reach  `json:"reach"`
	// false: a deciding fact is unknown, or it depends on the client
	Sure bool     `json:"sure"`
	Dial []string `json:"dial"` // by clients of that place
}

func (r *Report) exposure() []Exposed {
	out := []Exposed{}
	add := func(x Exposed) {
		i := slices.IndexFunc(out, func(o Exposed) bool {
			return o.Port == x.Port && o.Proto == x.Proto && o.Server == x.Server
		})
		switch {
		case i < 0:
			out = append(out, x)
		case rank(x.Reach) < rank(out[i].Reach) ||
			x.Reach == out[i].Reach && x.Sure && !out[i].Sure:
			out[i] = x
		case x.Reach == out[i].Reach:
			for _, d := range x.Dial {
				if !slices.Contains(out[i].Dial, d) {
					out[i].Dial = append(out[i].Dial, d)
				}
			}
		}
	}
	for _, row := range r.Ports {
		x := Exposed{Port: row.Port, Proto: row.Proto, Server: row.Server.brief()}
		x.take(row.Paths, []Client{Remote}, []Client{Neighbour},
			[]Client{Loopback, Loopback6, OwnAddr})
		add(x)
	}
	for _, in := range r.Inside {
		x := Exposed{Port: in.Port, Proto: in.Proto, Server: in.Server.brief()}
		x.take(in.Paths, []Client{Remote}, []Client{Neighbour, Foreign}, []Client{OwnAddr})
		add(x)
	}
	slices.SortStableFunc(out, func(a, b Exposed) int { return rank(a.Reach) - rank(b.Reach) })
	return out
}

func rank(r Reach) int {
	return slices.Index([]Reach{FromMachines, FromContainers, FromHere, FromNowhere}, r)
}

func (x *Exposed) take(paths map[Client]Path, machines, containers, here []Client) {
	x.Reach, x.Sure, x.Dial = FromNowhere, true, []string{}
	for i, of := range [][]Client{machines, containers, here} {
		for _, c := range of {
			p, ok := paths[c]
			if !ok || !p.Answers() {
				continue
			}
			sure := len(p.Doubt) == 0 && len(p.Depends) == 0
			if x.Reach == FromNowhere {
				x.Reach, x.Sure = []Reach{FromMachines, FromContainers, FromHere}[i], sure
			}
			if !slices.Contains(x.Dial, p.Dial) {
				x.Dial = append(x.Dial, p.Dial)
			}
		}
		if x.Reach != FromNowhere {
			return
		}
	}
}

const fewNamed = 8

func (r *Report) answer() *analysis.Answer {
	if len(r.Exposure) == 0 {
		return nil
	}
	a := &analysis.Answer{Question: "What is reached from where?", Text: []string{}}
	more := ""
	for _, x := range []struct {
		reach     Reach
		one, many string
		notSure   string
		none      string
	}{
		{FromMachines, "Other machines reach 1 port: %[1]s.",
			"Other machines reach %[1]d ports: %[2]s.", "Other machines may reach %s.",
			"Other machines reach no port."},
		{FromContainers, "Containers and this machine reach 1 port%[2]s: %[1]s.",
			"Containers and this machine reach %[1]d ports%[3]s: %[2]s.",
			"Containers may reach %s.", ""},
		{FromHere, "Only this machine reaches %[1]s.", "Only this machine reaches %[2]s.",
			"Perhaps only this machine reaches %s.", ""},
		{FromNowhere, "Nothing answers on %[1]s.", "Nothing answers on %[2]s.", "", ""},
	} {
		var sure, open []string
		for _, e := range r.Exposure {
			if e.Reach != x.reach {
				continue
			}
			name := fmt.Sprintf("%d/%s (%s)", e.Port, e.Proto, e.Server)
			if e.Sure {
				sure = append(sure, name)
			} else {
				open = append(open, name)
			}
		}
		switch {
		case len(sure) == 1:
			a.Add(fmt.Sprintf(x.one, sure[0], more))
		case len(sure) > 1:
			a.Add(fmt.Sprintf(x.many, len(sure), few(sure), more))
		case len(open) == 0 && r.Port == 0:
			a.Add(x.none)
		}
		if len(sure) > 0 {
			more = " more"
		}
		if len(open) > 0 && x.notSure != "" {
			a.Add(fmt.Sprintf(x.notSure, few(open)))
		}
	}
	if r.Port != 0 {
		for _, text := range r.shut() {
			a.Add(text)
		}
	}
	if n := len(r.Traps); n > 0 && r.Port == 0 {
		a.Add(fmt.Sprintf("%d %s listed below.", n,
			map[bool]string{true: "trap is", false: "traps are"}[n == 1]))
	}
	return a
}

func (r *Report) shut() (out []string) {
	add := func(who, name string, p Path) {
		if p.Kind != Blocked {
			return
		}
		text := fmt.Sprintf("%s: %s is blocked, %s.", who, name, p.Why)
		if p.Remedy != "" {
			text += " If that is not wanted: " + p.Remedy + "."
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	who := map[Client]string{Loopback: "This machine at 127.0.0.1",
		Loopback6: "This machine at ::1",
		OwnAddr:   "This machine", Neighbour: "Containers of its network", Remote: "Other machines"}
	for _, c := range []Client{Remote, Neighbour, OwnAddr, Loopback, Loopback6} {
		for _, row := range r.Ports {
			add(who[c], row.name(), row.Paths[c])
		}
	}
	return out
}

func few(names []string) string {
	if len(names) <= fewNamed {
		return printable.List(names)
	}
	return strings.Join(names[:fewNamed], ", ") + fmt.Sprintf(" and %d more", len(names)-fewNamed)
}

func (s Server) brief() string {
	switch {
	case s.Kind == "container" && s.Network == "" && s.Port != 0:
		return fmt.Sprintf("%s:%d", s.Name, s.Port)
	case s.Name != "":
		return s.Name
	}
	return "not known"
}
