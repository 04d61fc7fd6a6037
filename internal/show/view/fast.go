package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/reach/fast"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// Fast shows the ports with a shortcut past docker-proxy.
func Fast(s *fast.Status) document.Document {
	d := document.Document{Kind: document.FastState, JSON: s, Sections: saying(fastState(s))}
	if s.State == fast.Off {
		return d
	}
	if len(s.Shortcuts) > 0 {
		t := document.Table{Level: 1, Layouts: onlyGaps,
			Columns: []document.Column{texts("clients here", "that dial"), texts("", "reach"),
				texts("", "container"), figures("connections", "that did")}}
		for _, r := range s.Shortcuts {
			t.Rows = append(t.Rows, document.Row{
				Cells: document.Texts(r.Dial.String(), r.Target.String(), orDash(r.Container),
					fmt.Sprint(r.Taken))})
		}
		d.Add(section(nil, t))
	}
	if len(s.Links) > 0 {
		d.Add(section(nil, linkTable(s.Links)))
	}
	var left []string
	for _, l := range s.Left {
		what := fmt.Sprintf("%s/%s", l.Host, l.Proto)
		if l.Container != "" {
			what += " of " + l.Container
		}
		left = append(left, without(what, l.Why, l.Remedy))
	}
	d.Add(list(document.Skipped, "Ports without a shortcut", left))
	left = nil
	for _, l := range s.LinksLeft {
		left = append(left, without(l.What, l.Why, l.Remedy))
	}
	d.Add(list(document.Skipped, "Links that are not raised", left))
	var why []string
	for r, n := range s.Why {
		why = append(why, fmt.Sprintf("%d: %s", n, r))
	}
	slices.SortFunc(why, func(a, b string) int {
		return strings.Compare(a[strings.Index(a, ":"):], b[strings.Index(b, ":"):])
	})
	d.Add(list(document.Notes, "Connections to these ports that did not take the shortcut", why))
	d.Add(list(document.Notes, "Notes", append(s.Notes, saving(s)...)))
	return d
}

// saving says how the client of the first shortcut measures what it gains.
func saving(s *fast.Status) []string {
	if len(s.Shortcuts) == 0 {
		return nil
	}
	r := s.Shortcuts[0]
	return []string{fmt.Sprintf("what a client gains, here curl, measured with fast off: toll run "+
		"--client 'curl -so /dev/null {addr}' docker-proxy=%s container=%s", r.Dial, r.Target)}
}

func linkTable(links []fast.Link) document.Table {
	t := document.Table{Level: 1, Layouts: onlyGaps,
		Columns: []document.Column{texts("", "link"), texts("", "bridge"),
			texts("chosen", "containers"),
			texts("largest", "packet, B"), texts("", "before"), texts("", "state")}}
	for _, l := range links {
		t.Rows = append(t.Rows, document.Row{
			Cells: document.Texts(l.Name, orDash(l.Bridge),
				orDash(strings.Join(l.Containers, ", ")), l.Now.String(), l.Before.String(),
				l.State)})
	}
	return t
}

func fastState(s *fast.Status) string {
	of := "all published ports"
	if !s.All {
		of = "port " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(s.Ports)), ", "), "[]")
		if len(s.Ports) > 1 {
			of = strings.Replace(of, "port", "ports", 1)
		}
	}
	if slices.Contains(s.Parts, fast.Links) {
		of += map[bool]string{true: ", connect and links",
			false: ", links only"}[slices.Contains(s.Parts, fast.Connect)]
	}
	switch s.State {
	case fast.On:
		return fmt.Sprintf(
			"Fast is on, for %s; it ends in %.0f s unless toll fast watch renews it.", of, s.Lease)
	case fast.Expired:
		return fmt.Sprintf("Fast is off for %s: its lease expired. toll fast watch renews it.", of)
	}
	return "Fast is off."
}
