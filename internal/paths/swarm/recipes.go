package swarm

import (
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

var recipes = map[mode.Name]func(*site) error{
	mode.Host:             (*site).host,
	mode.PublishNAT:       (*site).publishNAT,
	mode.PublishIngress:   (*site).publishIngress,
	mode.Overlay:          (*site).overlay,
	mode.OverlayEncrypted: (*site).overlay,
}

// outward has the recipes for the target outside: the client is in a task, and the server is a
// process on the other node.
var outward = map[mode.Name]func(*site) error{
	mode.Host:          (*site).host,
	mode.BridgeDefault: (*site).bridgeOut,
	mode.Overlay:       (*site).overlayOut,
}

func recipeOf(s path.Spec) func(*site) error {
	if s.To.Outside() {
		return outward[s.Mode]
	}
	return recipes[s.Mode]
}

// Modes returns the names of the modes with services on a swarm.
func Modes() []string { return recipe.Names(recipes) }
