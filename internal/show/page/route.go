package page

import "github.com/bridgetoll/bridgetoll/internal/show/document"

func routeOf(r document.Route) markup {
	return "<ol class=\"route\">\n" + each(r.Steps, stepOf) + "</ol>" +
		optional(`<p class="bad">%s</p>`, r.Ends)
}

func stepOf(s document.RoutePoint) markup {
	counters := each(s.Counters, func(c document.Counter) markup {
		return put(`<div><dt>%s</dt><dd>%v <span aria-hidden="true">→</span> %v <b>+%v</b></dd></div>`,
			c.What, c.Before, c.After, c.After-c.Before)
	})
	return put(`<li><strong>%s</strong> <span>%s</span>`, s.Kind, textOf(s.Text)) +
		when(counters != "", "\n<dl>"+counters+"</dl>") + "</li>\n"
}

func pathOf(p document.Path) markup {
	return put("<h3>%s</h3>\n<ol class=\"route\">\n<li><strong>client</strong>", p.Name) +
		optional(` <span>dials %s</span>`, p.Dial) + "</li>\n" + each(p.Hops, hopOf) +
		"<li><strong>server</strong></li>\n</ol>\n" + guardsOf(p.Guards)
}

func hopOf(h document.Hop) markup {
	return put(`<li><strong>%s</strong> <span>%s <span class="faint">(%s)</span></span>`+
		"\n<dl>%s</dl></li>\n", h.Kind, h.Name, h.Where, each(h.Counts, func(c document.Count) markup {
		return put(`<div><dt>%s</dt><dd title="%s">%s</dd></div>`, c.What, c.Exact, c.Text)
	}))
}

func guardsOf(all []document.Hop) markup {
	if len(all) == 0 {
		return ""
	}
	text := markup(`<p class="faint">Beside the path, where it must not pass: `)
	for i, g := range all {
		text += when(i > 0, "; ") + put("%s %s (%s)", g.Kind, g.Name, g.Where) +
			each(g.Counts, func(c document.Count) markup { return put(" %s %s", c.What, c.Text) })
	}
	return text + ".</p>\n"
}
