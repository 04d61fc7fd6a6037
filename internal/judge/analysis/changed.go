package analysis

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// changesShown is how many changes of a path are told.
const changesShown = 3

// sayChanges says what is not as it was on a path.
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

// sayChange is "MTU of veth-server on machine A was 1500 and is 600 since round 3".
// Rounds are counted from 1 where people read them.
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

// lostEnd is what says that an end has gone, and so its devices; nil: none has.
func lostEnd(all []sample.Change) *sample.Change {
	for i, c := range all {
		if c.What == sample.ChangeLeft {
			return &all[i]
		}
	}
	return nil
}
