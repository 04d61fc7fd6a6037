package units

import (
	"strings"
	"time"
)

// ParseTime parses a time such as "250ms", "10s", "1m30s" or "0".
func ParseTime(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil {
		return d, nil
	}
	wrong := &textError{want: "a time such as 250ms, 10s or 5m"}
	if _, err := time.ParseDuration(s + "s"); err == nil {
		wrong.hint = "use " + s + "s"
	}
	return 0, wrong
}

// FormatTime returns the shortest text that ParseTime parses as d, in ASCII.
func FormatTime(d time.Duration) string {
	s := strings.ReplaceAll(d.String(), "µ", "u")
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
