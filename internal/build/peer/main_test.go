package peer_test

import (
	"os"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/build/path/pathtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	pathtest.RemoveToll()
	os.Exit(code)
}
