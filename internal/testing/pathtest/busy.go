package pathtest

import (
	"regexp"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

var disturbed = regexp.MustCompile(sample.TooBusy + `|another program traced the kernel|` +
	`the load ended before the window did|the machines' clocks are only known to`)

// TooBusy reports whether a run of toll, by its report, failed only because other programs kept
// visits off the CPUs, or traced the kernel: then it may be repeated with more rounds.
func TooBusy(report string) bool {
	said := strings.Join(strings.Fields(report), " ")
	return disturbed.MatchString(said) && !strings.Contains(said, "was not witnessed")
}
