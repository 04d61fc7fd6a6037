package view

import (
	"regexp"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// pasted matches commands of root's in a remedy, and the words in brackets on how they were tried.
var pasted = regexp.MustCompile(`(sudo [^()]+) (\((?:not )?tried[^)]*\))`)

// remedyBlocks returns a remedy whose commands have lines of their own, from which they can be
// copied.
func remedyBlocks(level int, remedy string) (out []document.Block) {
	rest := remedy
	say := func(prose, end string) {
		if prose = strings.Trim(prose, ":;, "); len(out) == 0 {
			prose = strings.TrimSpace("remedy: " + prose)
			if end != "" {
				prose = strings.TrimSuffix(prose, ":")
			}
		}
		if prose != "" || end != "" {
			out = append(out, paragraph(level, strings.TrimSpace(prose+" "+end)))
		}
	}
	for {
		at := pasted.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		say(rest[:at[0]], rest[at[4]:at[5]]+":")
		for _, line := range strings.Split(rest[at[2]:at[3]], "; ") {
			out = append(out, document.Command{Line: line, Level: level - 1})
		}
		rest = rest[at[1]:]
	}
	if rest = strings.TrimLeft(rest, ";, "); rest != "" || len(out) == 0 {
		say(rest, "")
	}
	return out
}
