package main

import (
	"regexp"

	"go.podman.io/image/v5/pkg/docker/config"
	"go.podman.io/image/v5/types"
)

var noHelper = regexp.MustCompile(`exec: "docker-credential-([^"]*)": executable file not found`)

// Per asked key the credential that is found. No credential helper is there, so asking one shows in the error.
func auth(q question, system *types.SystemContext) answer {
	found := []answer{}
	for _, key := range q.Asked {
		found = append(found, credential(system, key))
	}
	return answer{"found": found}
}

func credential(system *types.SystemContext, key string) answer {
	entry, err := config.GetCredentials(system, key)
	if err != nil {
		if match := noHelper.FindStringSubmatch(err.Error()); match != nil {
			return answer{"helper": match[1]}
		}
		return answer{"error": err.Error()}
	}
	return answer{"error": "", "username": entry.Username, "password": entry.Password, "identityToken": entry.IdentityToken}
}
