// Package printable makes text of others fit to be shown: on a terminal it moves
// nothing, hides nothing and is read in the order in which it stands. Code that
// reads foreign text calls it once, on input.
//
// What has a shape stays, in every script. Control characters, those that turn the
// direction of writing or have no width, what no standard has assigned and bytes
// that are no UTF-8 become Go's escapes, such as \x1b, \u202e and \xff. Escapes are
// plain text: what was made printable stays as it is the next time.
package printable

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line is s in one line, whose line breaks and tabs are escaped too.
func Line(s string) string { return escape(s, "") }

// Text is s with its lines, however they end, and tabs.
func Text(s string) string { return escape(strings.ReplaceAll(s, "\r\n", "\n"), "\n\t") }

// Words is s in one line in which any white space is one space.
func Words(s string) string { return Line(strings.Join(strings.Fields(s), " ")) }

// Capital is s with a capital at its beginning.
func Capital(s string) string {
	if s == "" {
		return s
	}
	_, size := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:size]) + s[size:]
}

// List is all of the names in a sentence: "a, b and c".
func List(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// Limit is the first characters of s, so many at most.
func Limit(s string, most int) string {
	n := 0
	for i := range s {
		if n == most {
			return s[:i]
		}
		n++
	}
	return s
}

// Start is Limit with an ellipsis behind what was cut.
func Start(s string, most int) string {
	if start := Limit(s, most); len(start) < len(s) {
		return start + "…"
	}
	return s
}

// End is the last bytes of s, so many at most, with an ellipsis before them if
// there were more.
func End(s string, most int) string {
	over := len(s) - most
	if over <= 0 {
		return s
	}
	for s = s[over:]; s != "" && !utf8.RuneStart(s[0]); {
		s = s[1:]
	}
	return "…" + s
}

func escape(s, keep string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsGraphic(r) || strings.ContainsRune(keep, r):
			b.WriteString(s[:size])
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// Plain reports whether JSON text decodes to strings that are printable as they
// are, as all do that have neither escapes nor anything but ASCII.
func Plain(json []byte) bool {
	const del = 0x7f
	for _, c := range json {
		if c == '\\' || c >= del {
			return false
		}
	}
	return true
}

// tag marks a field whose strings may have lines: `printable:"text"`.
const tag = "printable"

// Fields makes every string printable that the pointer leads to, in structs,
// slices and maps, their keys included: by Line, or by Text in fields with the tag
// `printable:"text"`.
func Fields(pointer any) { fields(reflect.ValueOf(pointer).Elem(), Line) }

func fields(v reflect.Value, clean func(string) string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(clean(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			fields(v.Elem(), clean)
		}
	case reflect.Interface:
		if !v.IsNil() { // what it holds cannot be changed in place
			held := reflect.New(v.Elem().Type()).Elem()
			held.Set(v.Elem())
			fields(held, clean)
			v.Set(held)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			fields(v.Index(i), clean)
		}
	case reflect.Map:
		entries(v, clean)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch {
			case !f.IsExported():
			case f.Tag.Get(tag) == "text":
				fields(v.Field(i), Text)
			default:
				fields(v.Field(i), clean)
			}
		}
	}
}

// entries cleans the keys and values of a map.
func entries(m reflect.Value, clean func(string) string) {
	for it := m.MapRange(); it.Next(); {
		was := it.Key()
		key, value := reflect.New(was.Type()).Elem(), reflect.New(m.Type().Elem()).Elem()
		key.Set(was)
		value.Set(it.Value())
		fields(key, clean)
		fields(value, clean)
		if !key.Equal(was) {
			m.SetMapIndex(was, reflect.Value{})
		}
		m.SetMapIndex(key, value)
	}
}
