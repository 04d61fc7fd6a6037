package swarm

import (
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

// Modes returns the names of the modes of services on a swarm.
func Modes() []string { return recipe.Names(recipes) }
