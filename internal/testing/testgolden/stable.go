package testgolden

import (
	"os"
	"regexp"
)

var differs = []struct {
	match *regexp.Regexp
	by    string
}{
	{regexp.MustCompile(`(127\.0\.0\.1|\[::1\]|localhost):[1-9]\d{3,4}\b`), "$1:PORT"},
	{regexp.MustCompile(regexp.QuoteMeta(os.TempDir()) + `/(Test[\w-]+/\d{3}|[a-z-]+\d{6,})\b`), "DIR"},
}

// Stable returns a text with what differs from run to run replaced: ports of loopback addresses by
// PORT, and temporary directories by DIR.
func Stable(text string) string {
	for _, d := range differs {
		text = d.match.ReplaceAllString(text, d.by)
	}
	return text
}
