package main

import (
	"context"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
)

// auditCredentials writes down which keys and tokens were made, or are no longer accepted, since an earlier run.
func auditCredentials(ctx context.Context, log *audit.Log, before, now devCredentials) {
	actor := audit.Party{Kind: audit.Developer}
	for _, p := range now.Properties {
		earlier, id := before.property(p.name()), p.name().String()
		for _, lists := range [][2][]auth.Credential{{earlier.keyHashes(), p.keyHashes()}, {earlier.tokenHashes(), p.tokenHashes()}} {
			for _, entry := range audit.CredentialChanges(id, actor, lists[0], lists[1]) {
				log.Write(ctx, entry)
			}
		}
	}
}

func (p devProperty) keyHashes() []auth.Credential {
	var list []auth.Credential
	for _, k := range p.APIKeys {
		key := auth.Credential{Name: k.Name, Hash: auth.HashOf(k.Key)}
		if k.Publishable {
			key.Publishable = &auth.Publishable{} // what bounds it is not kept from one run to the next
		}
		list = append(list, key)
	}
	return list
}

func (p devProperty) tokenHashes() []auth.Credential {
	var list []auth.Credential
	for _, t := range p.AccessTokens {
		list = append(list, auth.Credential{Name: t.Name, Hash: auth.HashOf(t.Token), Scope: t.Scope})
	}
	return list
}
