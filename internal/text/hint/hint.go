// Package hint tells what to do about an error.
package hint

import "errors"

// Of returns what the first error in err's tree that has a method Hint() string says to do about
// it; "" without one, and for nil.
func Of(err error) string {
	var e interface{ Hint() string }
	if errors.As(err, &e) {
		return e.Hint()
	}
	return ""
}
