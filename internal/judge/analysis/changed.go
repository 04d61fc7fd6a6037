package analysis

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const changesShown = 3

func sayChanges(all []sample.Change) string {
	var out []string
	for n, c := range all {
		if n == changesShown {
			out = append(out, fmt.Sprintf("and %d more", len(all)-n))
			break
		}
		out = append(out, sayChange(c))
	}
	return strings.Join(out, "; ")
}

// sayChange returns text such as "MTU of veth-server on machine A was 1500 and is 600 since round
// 3". Printed rounds count from 1.
func sayChange(c sample.Change) string {
	at := "in"
	if strings.HasPrefix(c.Where, "machine ") || strings.HasPrefix(c.Where, "this machine") {
		at = "on"
	}
	was, is := "was "+c.Was, "is "+c.Is
	if c.Was == "" {
		was = "was not there"
	}
	if c.Is == "" {
		is = "is gone"
	}
	return fmt.Sprintf("%s %s %s %s and %s since round %d", c.What, at, c.Where, was, is, c.Round+1)
}

// lostEnd returns the change that removed an end of the path, and so its devices; nil if none did.
func lostEnd(all []sample.Change) *sample.Change {
	for i, c := range all {
		if c.What == sample.ChangeLeft {
			return &all[i]
		}
	}
	return nil
}
