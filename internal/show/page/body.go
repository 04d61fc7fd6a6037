package page

import "github.com/bridgetoll/bridgetoll/internal/show/document"

func (v view) page() markup {
	return "<!doctype html>\n<html lang=\"en\">\n" + v.head() +
		"<body>\n<a class=\"skip\" href=\"#main\">To the content</a>\n" + v.header() +
		"<main id=\"main\">\n" + each(v.Lead, sectionOf) +
		"\n" + v.contents() +
		"\n" + when(len(v.Charts) > 0, `<noscript><p class="note">The charts need JavaScript. `+
		`Their figures are in the tables below each of them.</p></noscript>`) +
		"\n" + each(v.Groups, group.section) +
		"\n" + when(len(v.Facts) > 0, `<div id="tables">`) +
		"\n" + each(v.Rest, sectionOf) +
		"\n" + when(len(v.Facts) > 0, `</div>`) +
		"\n" + v.pathSection() +
		"\n" + v.factSection() +
		"\n" + v.dataSection() + "</main>\n" + v.scripts() + "</body>\n</html>\n"
}

func (v view) head() markup {
	return put(`<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="bridgetoll">
<title>%s</title>
<style>%s</style>
</head>
`, v.Policy, v.Title, v.Style)
}

func (v view) header() markup {
	return "<header>\n" +
		when(v.Command != "", put(`<p class="command">%s</p>`, nobreak(v.Command))) +
		put("\n<h1>%s</h1>\n", v.Title) + optional(`<p class="lede">%s</p>`, v.Lede) +
		"\n</header>\n"
}

// mostLinks is the largest number of groups of charts whose links stand above the charts. More are
// folded up.
const mostLinks = 6

func (v view) contents() markup {
	if len(v.Facts) == 0 {
		return ""
	}
	link := func(id, text string) markup {
		return put("<li><a href=\"#%s\">%s</a></li>\n", id, text)
	}
	groups := each(v.Groups, func(g group) markup { return link(g.ID, g.Title) })
	if n := len(v.Groups); n > mostLinks {
		groups = put("<li><details><summary>%v groups of charts</summary><ul>\n%s"+
			"</ul></details></li>\n", n, groups)
	}
	return "<nav aria-label=\"Contents\"><ul>\n" + groups +
		when(len(v.Rest) > 0, link("tables", "Tables")) +
		when(len(v.Paths) > 0, link("paths", "Paths")) +
		link("facts", "Machine and plan") + link("data", "Data") + "</ul></nav>"
}

func (g group) section() markup {
	return put("<section class=\"charts\" id=\"%[1]s\" aria-labelledby=\"%[1]s-title\">\n"+
		"<h2 id=\"%[1]s-title\">%[2]s</h2>\n%[3]s</section>\n",
		g.ID, g.Title, each(g.Charts, chart.figure))
}

func (c chart) figure() markup {
	return put("<figure%[4]s aria-labelledby=\"%[1]s-title\">\n<h3 id=\"%[1]s-title\">%[2]s</h3>\n"+
		"<p class=\"faint\">%[3]s</p>\n", c.ID, c.Title, c.How, when(c.Aside, ` class="aside"`)) +
		when(c.Kind != "", put("<div class=\"drawing\" id=\"%s\"></div>\n", c.ID)) +
		when(len(c.Table.Rows) > 0, put("<details%s>\n<summary>The figures as a table</summary>\n"+
			"%s\n</details>\n", when(c.Kind == "", " class=\"list\""), tableOf(c.Table))) + "</figure>\n"
}

func (v view) pathSection() markup {
	open := " open" // the first
	return when(len(v.Paths) > 0, `<section id="paths">
<h2>Paths and what their hops counted</h2>
<p class="faint">From the client to the server, in all rounds together. `+
		`A row is a result only if its bytes were counted on each hop.</p>
`+each(v.Paths, func(g document.PathGroup) markup {
		m := put("<details%s>\n<summary>%s</summary>\n%s</details>\n", open, g.Title,
			each(g.Paths, pathOf))
		open = ""
		return m
	})+`</section>`)
}

func (v view) factSection() markup {
	return when(len(v.Facts) > 0, "<section id=\"facts\">\n<h2>Machine and plan</h2>\n"+
		each(v.Facts, func(g document.FactGroup) markup {
			return put("<details%s>\n<summary>%s</summary>\n<dl>\n%s</dl>\n</details>\n",
				when(g.Title != "Kernel settings", " open"), g.Title,
				each(g.Facts, func(f document.Fact) markup {
					return put("<div><dt>%s</dt><dd>%s</dd></div>\n", f.Name, f.Value)
				}))
		})+"</section>")
}

func (v view) dataSection() markup {
	name := "toll"
	if len(v.Facts) > 0 {
		name = "report"
	}
	return put(`<section id="data">
<h2>Data</h2>
<p><a id="download" download="%s.json" hidden>Download as JSON</a>, what `+
		`<code>--format json</code> prints. It is in this file, too, in the element `+
		`<code>#report</code>.</p>
</section>
`, name)
}

func (v view) scripts() markup {
	return put("<script type=\"application/json\" id=\"report\">%s</script>\n", v.Report) +
		when(len(v.Charts) > 0, put("<script type=\"application/json\" id=\"charts\">%s</script>\n"+
			"<script>%s</script>", v.ChartData, v.Bundle)) +
		put("\n<script>%s</script>\n", v.Script)
}
