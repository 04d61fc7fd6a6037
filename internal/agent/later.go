package agent

import "errors"

var errLater = errors.New("not there yet")
