package program

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// inJSON returns the number at a path (sample.Gauge.Paths) of the last object in an output that is
// the value of the path's first key. Only that object needs to be whole, because the beginning of a
// long output is not kept.
func inJSON(path, output string) (string, bool) {
	first, rest, _ := strings.Cut(path, ".")
	rest, which, _ := strings.Cut(rest, "#")
	n, err := strconv.Atoi(which)
	if err != nil || n < 1 {
		n = 1
	}
	all := regexp.MustCompile(regexp.QuoteMeta(strconv.Quote(first))+`\s*:\s*\{`).
		FindAllStringIndex(output, -1)
	if len(all) == 0 {
		return "", false
	}
	begin := all[len(all)-1][1] - 1 // at the brace
	dec := json.NewDecoder(strings.NewReader(output[begin:]))
	dec.UseNumber()
	w := walk{dec: dec, want: rest}
	if w.value("") != nil || len(w.found) < n {
		return "", false
	}
	return w.found[n-1], true
}

// walk reads JSON with keys that occur more than once in an object.
type walk struct {
	dec   *json.Decoder
	want  string
	found []string // the numbers at want, in order
	depth int
}

const maxDepth = 100

var errDeep = errors.New("JSON is nested too deeply")

func (w *walk) value(path string) error {
	token, err := w.dec.Token()
	if err != nil {
		return err
	}
	if n, ok := token.(json.Number); ok && path == w.want {
		w.found = append(w.found, n.String())
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if w.depth++; w.depth > maxDepth {
		return errDeep
	}
	for i := 0; w.dec.More(); i++ {
		key := strconv.Itoa(i)
		if delim == '{' {
			token, err := w.dec.Token()
			if err != nil {
				return err
			}
			key, _ = token.(string)
		}
		if path != "" {
			key = path + "." + key
		}
		if err := w.value(key); err != nil {
			return err
		}
	}
	w.depth--
	_, err = w.dec.Token() // the end
	return err
}
